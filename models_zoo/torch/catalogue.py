"""The list of PyTorch models; importing it does not import torch."""

from __future__ import annotations

from entrepot.models_zoo.registry import Entry

CATALOGUE = (
    Entry("mlp", "tabular", "mlp", "Three linear layers with ReLU and GELU."),
    Entry("lenet_digits", "image-classification", "lenet_digits", "LeNet, trained on scikit-learn's digits."),
    Entry("resnet18", "image-classification", "resnet", "ResNet-18, basic blocks (2, 2, 2, 2)."),
    Entry("resnet50", "image-classification", "resnet", "ResNet-50, bottlenecks (3, 4, 6, 3)."),
    Entry("mobilenet_v2", "image-classification", "mobile", "MobileNetV2: inverted residuals and ReLU6."),
    Entry("efficientnet", "image-classification", "mobile", "EfficientNet-B0's plan: squeeze-excitation and SiLU."),
    Entry("densenet", "image-classification", "densenet", "Dense blocks that concatenate every earlier feature map."),
    Entry("convnext", "image-classification", "convnext", "ConvNeXt: depthwise 7x7, channels-last LayerNorm, scale."),
    Entry("vit", "image-classification", "vision_transformer", "ViT: patches, class token, learned positions."),
    Entry("swin", "image-classification", "swin", "Swin: shifted windows, relative position bias, patch merging."),
    Entry("mlp_mixer", "image-classification", "vision_transformer", "MLP-Mixer: mixes patches, then channels."),
    Entry("unet", "segmentation", "segmentation", "U-Net with skip connections, any image size."),
    Entry("dilated_segmentation", "segmentation", "segmentation", "Atrous pyramid head with image pooling."),
    Entry("detection_head", "detection", "detection", "Anchor-free head: scores, top-k, gathered and decoded boxes."),
    Entry("dcgan_generator", "generation", "generative", "DCGAN generator: transposed convolutions from noise."),
    Entry("autoencoder", "generation", "generative", "Convolutional autoencoder that upsamples by interpolation."),
    Entry("lstm_tagger", "token-classification", "recurrent", "Embedding, two LSTM layers, a label per token."),
    Entry("gru_classifier", "text-classification", "recurrent", "Bidirectional GRU, the last states classified."),
    Entry("bert", "text-encoding", "transformer", "BERT-like encoder with a padding mask and a pooler."),
    Entry("gpt", "text-generation", "transformer", "GPT-like decoder, causal mask made from the length."),
    Entry(
        "mixture_of_experts", "text-encoding", "mixture", "Feed-forward block routed to the top two of four experts."
    ),
    Entry("pointnet", "point-clouds", "pointnet", "PointNet: a learned 3x3 alignment, shared layers, maximum."),
    Entry("wavenet", "audio", "wavenet", "WaveNet: gated causal convolutions of growing dilation."),
    Entry("dlrm", "recommendation", "recommendation", "DLRM: EmbeddingBags and pairwise interactions."),
    Entry("two_tower", "recommendation", "recommendation", "Two towers: nested dicts in, a dataclass out."),
    Entry("early_exit", "control-flow", "control_flow", "torch.cond: a shallow or a deep branch, by the data."),
    Entry("fixed_point", "control-flow", "control_flow", "torch.while_loop: iterated until it stops changing."),
)
