"""The predefined operations of MPI that work element by element, and numpy's name for each."""

UFUNC_NAMES = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "land": "logical_and",
    "lor": "logical_or",
    "lxor": "logical_xor",
    "band": "bitwise_and",
    "bor": "bitwise_or",
    "bxor": "bitwise_xor",
}
