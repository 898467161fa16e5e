// Nothing: the target that builds the precompiled header wants a source file.
