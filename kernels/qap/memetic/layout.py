"""What the kernels of memetic.cu and their launches share. T, W and T64 are chosen when they are compiled."""

from kernels.layout import parameter, struct
from kernels.qap.layout import NEWS

JUDGES = 1024
"""Threads of `judge`."""
ERA = 5
"""Epochs of an era: the last begins with the best members of the others."""
LEAST_MEMBERS = 2 * (ERA - 1)
"""Fewer have no such epoch."""

MATRICES = struct(
    "Matrices",
    """
    const W* a                 // [N, N]
    const W* b                 // [N, N]
    const W* a_skew            // [N, N], with SKEW
    const W* b_skew
    const T* linear            // [N, N], with LINEAR
    """,
)

MEMBERS = struct(
    "Members",
    """
    short* population          // [2, members, N]
    short* record              // [N]: the best of all
    T64* cost                  // [2, members]
    int* stale                 // [2, members]: generations without a better child
    int* visits                // [N, N]: where epochs ended
    short* elders              // [members, N]: the best of each epoch of the era
    unsigned char* scratch     // [members, SCRATCH]
    int n                      // facilities of the problem; those from n to N - 1 stay where they are
    int parity                 // of the half that is read
    int tenure_low
    int tenure_span
    unsigned long long seed
    """,
)

RECIPE = struct(
    "Recipe",
    """
    int cross                  // how children come about; of 256
    int relink                 // of 256
    int strength_low
    int strength_span
    int patience
    int reach                  // how far away in the ring a partner is
    """,
)

EPOCH = struct(
    "Epoch",
    """
    T64 best                   // of all epochs
    T64 least                  // of this one
    T64 goal                   // ends everything
    unsigned long long moves
    float growth
    int length                 // moves of a generation
    int base                   // of an epoch that begins afresh
    int longest
    int quiet
    int quiet_limit            // of an epoch that begins afresh
    int number
    int generation
    int fresh
    int done
    """,
)
"""How the whole population stands; written by `judge`, and at first by the host."""

EVOLVE_ARGS = parameter(
    "EvolveArgs",
    """
    Matrices m
    Members all
    Recipe recipe
    Epoch* state
    News news
    """,
    MATRICES,
    MEMBERS,
    RECIPE,
    NEWS,
)

JUDGE_ARGS = parameter(
    "JudgeArgs",
    """
    Members all
    Epoch* state
    News news
    int members
    """,
    MEMBERS,
    NEWS,
)
STRUCTS = (MATRICES, MEMBERS, RECIPE, EPOCH, EVOLVE_ARGS, JUDGE_ARGS)
NUMBERS = {"JUDGES": JUDGES, "ERA": ERA, "LEAST_MEMBERS": LEAST_MEMBERS}
CUDA = "\n".join(
    [*(f"constexpr int {name} = {number};" for name, number in NUMBERS.items()), *(one.text for one in STRUCTS)]
)
