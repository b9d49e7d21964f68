"""What the kernel of multistart.cu and its launch share. value_t and wide_t are chosen when it is compiled."""

from kernels.layout import parameter, struct
from kernels.qap.layout import NEWS

PROBLEM = struct(
    "QapProblem",
    """
    const value_t* flow        // [n, n]
    const value_t* flow_t      // transposed
    const value_t* distance    // [n, n]
    const value_t* distance_t
    const value_t* linear      // [n, n]
    int n
    """,
)

PLAN = struct(
    "Plan",
    """
    int starts
    int iterations
    int tenure_least
    int tenure_span
    int age                    // iterations after which an exchange is long unused; 0: none is forced
    int every                  // iterations between two that may be forced
    int tabu                   // 0: 2-opt
    int round
    int given                  // whether the starts are the host's
    int streamed               // what lies in global memory: 1 `until`, 2 `partial` as well
    unsigned long long seed
    """,
)

FOUND = struct(
    "Found",
    """
    const int* starts          // [starts, n]
    int* hall                  // [starts, n]: the best permutation of each search
    int* visits                // [n, n]: how often facility u was found at location l
    wide_t* hall_costs         // [starts]
    News news
    unsigned char* stream      // [blocks, stream_bytes]
    size_t stream_bytes
    unsigned long long* iterations
    """,
    NEWS,
)

SEARCH_ARGS = parameter(
    "SearchArgs",
    """
    QapProblem problem
    Plan plan
    Found found
    """,
    PROBLEM,
    PLAN,
    FOUND,
)
CUDA = "\n".join(one.text for one in (PROBLEM, PLAN, FOUND, SEARCH_ARGS))
