"""Compile an attention kernel for a GPU that need not be there, and print what came of it as JSON.

A program of its own, since interpreted functions cannot be compiled.
"""

import json
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels.flash_attention import flash_attention_kernel
from kernels.flash_attention_backward_keys import key_gradients_kernel
from kernels.flash_attention_backward_queries import query_gradients_kernel
from kernels.flash_decode import flash_decode_kernel
from tests.kernels.machine_code import products_of, registers_of

KERNELS = {
    "forward": flash_attention_kernel,
    "keys": key_gradients_kernel,
    "queries": query_gradients_kernel,
    "decode": flash_decode_kernel,
}


def main() -> None:
    kernel, mask = KERNELS[sys.argv[1]], sys.argv[2]
    generation, itemsize, D, BLOCK_M, BLOCK_N, warps, stages = map(int, sys.argv[3:])
    dtype = {2: "bf16", 4: "fp32"}[itemsize]
    tma, hopper = generation >= 90, generation == 90
    operands = dict.fromkeys(("q", "out", "dout", "dq"), BLOCK_M)
    operands |= dict.fromkeys(("k", "v", "dk", "dv"), BLOCK_N)
    names = kernel.arg_names
    fixed = {
        "D": D, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_D": triton.next_power_of_2(D),
        "IS_CAUSAL": mask != "none", "HAS_WINDOW": mask == "window", "HAS_TAIL": mask != "none",
        "TMA": tma, "KEPT": hopper, "AHEAD": hopper and D > 64,
    }  # fmt: skip
    fixed = {name: value for name, value in fixed.items() if name in names}
    signature, attributes = {}, {}
    for i, name in enumerate(names):
        pointer = name.endswith("_ptr")
        signature[name] = (
            "constexpr" if name in fixed
            else f"tensordesc<{dtype}[1, 1, {operands[name]}, {fixed['BLOCK_D']}]>"
            if tma and name in operands
            else (f"*{dtype}", "i32", "i32", "i32") if name in operands
            else f"*{dtype}" if name in ("q_ptr", "out_ptr")
            else "*fp32" if pointer
            else "fp32" if name.endswith("scale") else "i32"
        )  # fmt: skip
        by_16 = [["tt.divisibility", 16]]
        if name in operands and not tma:
            attributes |= {(i, part): by_16 for part in range(4)}
        elif pointer or name in ("N_Q", "N_K") or name.startswith("stride"):
            attributes[i,] = by_16
    constants = {(names.index(name),): value for name, value in fixed.items()}
    source = ASTSource(kernel, signature, constants, attributes)
    options = {"num_warps": warps, "num_stages": stages}
    compiled = triton.compile(source, target=GPUTarget("cuda", generation, 32), options=options)
    cubin, found = compiled.asm["cubin"], {"shared": compiled.metadata.shared}
    found["registers"] = registers_of(cubin)
    print(json.dumps(found | (products_of(cubin)._asdict() if hopper else {})))


if __name__ == "__main__":
    main()
