"""Loops written as LLVM instructions, where the compiler finds no vector code; a barrier.

No other folder imports llvmlite.
"""
