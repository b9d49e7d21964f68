"""What a file is, from its first bytes, its name or its media type."""

from pathlib import Path

from workers.store import unpack

SUFFIXES = {
    ".npy": "npy",
    ".npz": "npz",
    ".safetensors": "safetensors",
    ".dat": "qaplib",
    ".sln": "sln",
    ".mtx": "mtx",
    ".bin": "auction",
}
MEDIA_TYPES = {
    "application/x-npy": "npy",
    "application/x-npz": "npz",
    "application/x-safetensors": "safetensors",
    "application/vnd.safetensors": "safetensors",
    "application/x-qaplib": "qaplib",
    "application/x-matrix-market": "mtx",
}
NPY = b"\x93NUMPY"
STARTS = {NPY: "npy", unpack.ZIP: "npz", b"%%MatrixMarket": "mtx"}
A_TABLE = (
    "a table of text is read by POST /v1/previews?filename=costs.csv, which answers with a `reference` for the job"
)
"""What to do with one that was sent as an input."""


def is_plain(path: Path, format: str | None) -> bool:
    """Whether reading it means no more than reading a short header: an .npy file, or raw numbers."""
    with path.open("rb") as file:
        head = file.read(8)
    if format == "raw":
        return unpack.packing(head) is None
    return format in (None, "npy") and head.startswith(NPY)


def sniff(path: Path, filename: str = "", content_type: str = "") -> str | None:
    """The format of a file that is not compressed: by its first bytes, else its name, else its media type."""
    with path.open("rb") as file:
        head = file.read(64)
    by_start = next((format for start, format in STARTS.items() if head.startswith(start)), None)
    if by_start:
        return by_start
    if len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size:
        return "safetensors"
    name = filename.lower().removesuffix(".gz").removesuffix(".zst")
    by_name = SUFFIXES.get(Path(name).suffix) or MEDIA_TYPES.get(content_type.split(";")[0].strip())
    if by_name:
        return by_name
    return "qaplib" if head and not head.strip(b"0123456789+-.eE \t\r\n") else None


def looks_like_a_table(path: Path) -> bool:
    """Whether a file begins with a line of text in cells."""
    with path.open("rb") as file:
        head = file.read(4096)
    first = head.partition(b"\n")[0]
    return not set(head) & set(range(9)) and any(mark in first for mark in (b",", b";", b"\t"))
