"""The list of JAX models; importing it does not import JAX."""

from __future__ import annotations

from entrepot.models_zoo.registry import Entry

CATALOGUE = (
    Entry("mlp", "tabular", "plain", "Three dense layers written with jax.numpy; weights in a closure."),
    Entry("scan_rnn", "token-classification", "plain", "A recurrent network by lax.scan, a label per step."),
    Entry("graph_network", "graphs", "plain", "Messages along edges, gathered by segment_sum."),
    Entry("cached_attention", "text-generation", "plain", "One step of a decoder that updates a cache."),
    Entry("resnet", "image-classification", "linen", "flax linen: residual blocks with batch statistics."),
    Entry("vit", "image-classification", "linen", "flax linen: ViT with a class token."),
    Entry("mixer", "image-classification", "linen", "flax linen: MLP-Mixer."),
    Entry("decoder", "text-generation", "linen", "flax linen: a causal transformer with tied embeddings."),
    Entry("diffusion_unet", "generation", "linen", "flax linen: a denoiser with time embedding and attention."),
    Entry("autoencoder", "generation", "nnx", "flax nnx: a variational autoencoder that draws from a key."),
    Entry("equinox_transformer", "text-encoding", "equinox", "equinox: attention and an MLP, mapped over the batch."),
)
