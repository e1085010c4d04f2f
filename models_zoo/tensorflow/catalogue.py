"""The list of TensorFlow models; importing it does not import TensorFlow."""

from __future__ import annotations

from entrepot.models_zoo.registry import Entry

CATALOGUE = (
    Entry("cnn", "image-classification", "vision", "Convolutions, batch statistics and pooling, NHWC."),
    Entry("unet", "segmentation", "vision", "A U-Net: strided convolutions down, resized images up."),
    Entry("mixer", "image-classification", "vision", "MLP-Mixer on patches."),
    Entry("autoencoder", "generation", "vision", "A variational autoencoder that draws by a seed."),
    Entry("masked_rnn", "token-classification", "sequences", "A GRU by tf.scan whose state stays where a mask is off."),
    Entry("transformer", "token-classification", "sequences", "An encoder of pre-normalised blocks with exact GELU."),
    Entry("tuned_encoder", "text-classification", "tuned", "A saved language model's encoder, trained on with a head."),
    Entry("greedy_decoder", "text-generation", "sequences", "tf.while_loop and a TensorArray: the likeliest tokens."),
    Entry("graph_network", "graphs", "graphs", "Messages along edges, taken together by segment operators."),
    Entry("word_scorer", "text-classification", "texts", "Words looked up in a vocabulary, and their vectors added."),
)
