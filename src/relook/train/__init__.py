"""Networks, trained on noisy labels or on none. Needs torch, numpy and safetensors alone."""
