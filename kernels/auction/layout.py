"""What the auction's kernels and their launches share: structs, constants, arguments. Sizes: m rows, n columns."""

from kernels.layout import enumeration, parameter, struct

LIST = 64
"""Edges in a short list, two a lane."""
BLOCK = 1024
"""Threads of every block; one warp bids for one row."""
LONG = 65536
"""A row with so many edges is read by the whole grid, where there are few of them."""
LOWEST = -(2**62)
"""A net benefit that is none."""
NO_ROW = 2**64 - 1
"""A label that is none."""

PIECES = struct(
    "Pieces",
    """
    const Int* rows            // [n_rows], null: none
    int* columns               // [n_rows, blocks, LIST]
    Int* benefits              // [n_rows, blocks, LIST]
    Int* rest                  // [n_rows, blocks]
    Int n_rows
    """,
)

AUCTION = struct(
    "Auction",
    """
    const Int* indptr          // [m + 1], null when dense
    const int* indices         // [nnz], null when dense
    const VALUE* values        // [nnz] or [m, n]; points: x [m, dimension]
    const VALUE* targets       // points: y [n, dimension]
    int* list_columns          // [m, LIST], -1 where unused
    Int* list_benefits         // [m, LIST]
    Int* rest                  // [m]: no edge outside the list has a higher net benefit
    Int* prices                // [n]
    int* column_of             // [m], -1: unassigned
    Int* held                  // [m]: benefit of the assigned pair
    int* row_of                // [n], -1: never sold
    int* queue                 // [m]: rows without a column
    int* next_queue            // [m]
    int* offer_column          // [m], by position in the queue
    Int* offer_benefit         // [m]
    Int* offer_rise            // [m]
    int* stale                 // [m]: positions, or rows, whose list must be read again
    unsigned long long* top_rise  // [n]: highest rise of the round; 0 between rounds
    int* top_row            // [n]: the row that made it; INT_MAX between rounds
    int* kind_of               // [m]: alike rows have the same (alike.cuh); these five null when not asked for
    unsigned long long* kinds  // [kind_mask + 1]: their hashes
    int* gathered              // [kind_mask + 1]: how many of a kind have a place; 0 between rounds
    int* depth                 // [kind_mask + 1]: on how many columns their lists agree; INT_MAX between rounds
    int* place                 // [m], by position in the queue: place among the kind
    const Int* epsilons        // [n_phases]
    int* bidders               // [trace_size]: bidders by round, or null
    struct AuctionState* state
    Int n_rows
    Int n_cols
    Int n_phases
    Int trace_size
    Int alone                  // the rise of a row with one edge: the span of benefits
    Int deterministic          // of equal rises the lowest row wins, else whoever writes last
    Int spread                 // of equals row i prefers the first column from i on, else the lowest
    Int longest                // most edges of a row
    Int kind_mask
    Int dimension              // of points
    double scale
    Pieces pieces              // the lists of the pieces of long rows, piece b of row rows[k] at k * blocks + b
    """,
    PIECES,
)

STATE = struct(
    "AuctionState",
    """
    Int phase
    Int opened
    Int rounds
    Int bids
    Int n_queue
    Int n_next
    Int n_stale
    Int readings
    Int opened_readings
    Int n_alike
    Int n_raised
    Int squabbles
    """,
)
"""What outlives a launch."""

PATH_FOREST = struct(
    "PathForest",
    """
    unsigned long long* label               // [n], NO_ROW: none
    int* stamp                 // [m]: the last wave that a row was listed for, so that it stands there once
    int* active                // [2, m]: rows to scan, by parity of the wave
    int* whole                 // [m]: rows to read whole
    Int* whole_at              // [m]: distance at which a row was last read whole in this forest, FAR: not
    int* tree                  // [n]: root of a labelled column without a row
    Int* tree_distance         // [m], by root: nearest column without a row
    int* tree_column           // [m]: and which
    struct Growth* growth
    Int row_bits
    """,
)

GROWTH = struct(
    "Growth",
    """
    Int n_active[3]
    Int n_whole
    Int nearest
    Int farthest
    Int hidden
    Int outcome                // OUTCOMES
    Int forests
    Int waves
    Int scans
    Int readings
    """,
)

OUTCOMES = ("RUNNING", "COMPLETE", "INFEASIBLE", "TOO_FAR")
"""Of a forest."""
RUNNING, COMPLETE, INFEASIBLE, TOO_FAR = range(len(OUTCOMES))

RUN_AUCTION_ARGS = parameter(
    "RunAuctionArgs",
    """
    Auction a
    Int limit                  // of rounds
    Int stop                   // bidders left, when the forest takes over
    Int patience               // rounds of a phase, as `spent` counts them
    """,
    AUCTION,
)
BEST_NETS_ARGS = parameter(
    "BestNetsArgs",
    """
    Auction a
    Int* nets                  // [m]
    """,
    AUCTION,
)

AUGMENT_ROWS_ARGS = parameter(
    "AugmentRowsArgs",
    """
    Auction a
    PathForest f
    Int most_forests
    """,
    AUCTION,
    PATH_FOREST,
)
ARGUMENTS = (RUN_AUCTION_ARGS, BEST_NETS_ARGS, AUGMENT_ROWS_ARGS)
CUDA = "\n".join(
    [
        *(f"#define {name} {value}" for name, value in (("LIST", LIST), ("BLOCK", BLOCK), ("LONG", LONG))),
        f"constexpr Int LOWEST = {LOWEST};",
        f"constexpr unsigned long long NO_ROW = {NO_ROW}ull;",
        enumeration("Outcome", OUTCOMES),
        *(one.text for one in (PIECES, AUCTION, STATE, PATH_FOREST, GROWTH, *ARGUMENTS)),
    ]
)
