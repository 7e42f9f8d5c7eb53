"""Optimisers: each reads a frozen problem, moves a workspace, and leaves its best point and a status."""
