"""The list of Keras models; importing it does not import Keras."""

from __future__ import annotations

from entrepot.models_zoo.registry import Entry

CATALOGUE = (
    Entry("convnet", "image-classification", "images", "Convolutions, batch statistics, pooling, a flattened image."),
    Entry("unet", "segmentation", "images", "Down and up again with skips, for images of any size."),
    Entry("mixer", "image-classification", "images", "MLP-Mixer: patches and channels mixed in turn."),
    Entry("masked_rnn", "text-classification", "sequences", "Both directions of an LSTM and a GRU on padded ids."),
    Entry("transformer", "token-classification", "sequences", "Attention on padded ids, with positions."),
    Entry("autoencoder", "generation", "generative", "A variational autoencoder, a subclass, at the mean of its code."),
    Entry("transfer_head", "image-classification", "transfer", "Bytes, augmentation, a frozen encoder, a new head."),
)
