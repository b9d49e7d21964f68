"""What the kernels of uot and their launches share: the words of `status`, and arguments of kernels."""

from kernels.layout import enumeration, parameter, struct

STATUS_WORDS = ("ITERATIONS", "GAP", "PRIMAL", "DUAL", "REASON", "TRANSLATION", "REJECTED", "STATUS")
"""Places in status[], which the host reads and a later launch goes on from; the last one is their number."""
ITERATIONS, GAP, PRIMAL, DUAL, REASON, TRANSLATION, REJECTED, STATUS = range(len(STATUS_WORDS))
REASONS = ("RUNNING", "CONVERGED", "JUMPED", "EMPTY_COLUMN")
"""Why a launch ended."""
RUNNING, CONVERGED, JUMPED, EMPTY_COLUMN = range(len(REASONS))
PARTS = ("WHOLE", "SWEEP_ONLY", "COLUMNS_ONLY")
"""What of an iteration a launch does."""
WHOLE, SWEEP_ONLY, COLUMNS_ONLY = range(len(PARTS))

SUM_WORDS = ("MASS", "COLUMN_SIDE", "FAR", "EMPTY", "DIVERGENCE", "DEFECT", "VIOLATION", "EXACT", "SUMS")
"""Sums over columns; the last one is their number. The first four are for each iteration, the others for the gap."""
MEMORY = 5
"""Differences that Anderson acceleration keeps."""
ALL_SUMS = len(SUM_WORDS) - 1 + 2 + 2 * MEMORY
"""With the products of the acceleration."""
LINES = 2 * MEMORY + 2
"""Vectors of the acceleration: steps, residuals, the last residual, the last image."""

MIXING = struct(
    "Mixing",
    f"""
    double gram[{MEMORY}][{MEMORY}]  // sums of drho drho
    double first[{MEMORY}]           // of drho
    double delta[{MEMORY}]           // and ds
    double gamma[{MEMORY}]
    double normal[{MEMORY}][{MEMORY}]
    double last_shift
    double shift_before
    double best
    double mass
    int count
    int has_last
    int has_fallback
    int rejected
    """,
)
"""Alike in every block; in global memory between launches."""

ITERATE_ARGS = parameter(
    "IterateArgs",
    """
    const unsigned char* matrix      // panels [CS, m, width], or points
    const float* log_a               // [m]
    const float* log_b               // [ld]
    double* potential                // [m]
    float* g                         // [2, ld]
    float* history                   // lines of Anderson's vectors, a set for each team
    Mixing* memory
    unsigned long long* words        // messages between the teams
    float* partial                   // [teams, ld]
    double* status                   // [STATUS]
    int m
    int n
    int ld                           // columns with padding
    int product                      // reference a x b
    int dimension                    // of points, padded
    double eps
    double rho_a
    double rho_b
    double mass_a
    double mass_b
    double mass_reference
    double spread                    // of the costs, largest minus smallest
    double tolerance                 // relative gap that ends a launch
    double enough                    // gap that ends a launch, for each unit of the plan's mass; 0: none
    int iterations                   // sweeps at most
    int every                        // sweeps between two looks at the gap, when nothing is mixed
    int mixes                        // Anderson acceleration; 0: plain steps and translation
    int part                         // PARTS
    int slots                        // groups that shared memory holds at once
    int flight                       // copies into slots that may be under way at once
    int own_history                  // 1: the history lies in shared memory
    """,
)

SOLVE_BATCH_ARGS = parameter(
    "SolveBatchArgs",
    """
    const float* cost                // [batch, m, n]
    const float* log_a               // [batch, m]
    const float* log_b               // [batch, n]
    const Item* items                // [batch]
    double* potential                // [batch, m]
    float* g                         // [batch, n]
    double* status                   // [batch, STATUS]
    int product
    double eps
    double rho_a
    double rho_b
    double tolerance
    int iterations
    int every
    """,
)

ITEM = struct(
    "Item",
    """
    long long cost                   // offset of the problem's first entry
    long long row                    // of its first row
    long long column                 // and of its first column
    int m
    int n
    double mass_a
    double mass_b
    double mass_reference
    double spread
    """,
)

ADD_TEAMS_ARGS = parameter(
    "AddTeamsArgs",
    """
    const float* partial             // [teams, ld]
    float* sums                      // [n]
    int teams
    int n
    int ld
    """,
)

REFERENCE_OF_COSTS_ARGS = parameter(
    "ReferenceOfCostsArgs",
    """
    const float* cost                // panels [CS, m, width]
    const float* log_a               // [m]
    const float* g                   // [ld]
    double* potential                // [m]
    int m
    int n
    int width
    int product                      // reference a x b
    float scale                      // log2(e) / eps
    float power_a
    """,
)

REFERENCE_OF_POINTS_ARGS = parameter(
    "ReferenceOfPointsArgs",
    """
    const float* points              // as Cloud in points.cu
    const float* log_a               // [m]
    const float* g                   // [ld]
    double* potential                // [m]
    int m
    int n
    int ld
    int product
    int dimension                    // padded
    float power_a
    """,
)

KERNELS = (ITERATE_ARGS, SOLVE_BATCH_ARGS, ADD_TEAMS_ARGS, REFERENCE_OF_COSTS_ARGS, REFERENCE_OF_POINTS_ARGS)
CONSTANTS = (("MEMORY", MEMORY), ("ALL_SUMS", ALL_SUMS), ("LINES", LINES))
CUDA = "\n".join(
    [
        enumeration("Status", STATUS_WORDS),
        enumeration("Reason", REASONS),
        enumeration("Part", PARTS),
        enumeration("Sum", SUM_WORDS),
        *(f"constexpr int {name} = {value};" for name, value in CONSTANTS),
        ITEM.text,
        MIXING.text,
        *(kernel.text for kernel in KERNELS),
    ]
)
