from tests.instances import Case

CASES: list[Case] = []
