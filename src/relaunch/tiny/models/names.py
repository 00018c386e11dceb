"""What a field of a model's configuration is, by its name: a width, a number of heads or layers."""

from __future__ import annotations

import re

_KINDS = (
    ("", r"pos_emb_(width|height)"),
    ("", r"window_size.*|(max|min)_depth|temperature_.*|keypoint_decoder_dim"),
    ("", r"backbone_feature_sizes|return_idx"),
    ("", r"window_positional.*|look_(ahead|backward)_layers|.*fixing_codes|image_embedding_size"),
    ("", r"max_window_layers|median_filter_width|max_2d_position_embeddings"),
    ("", r"encode_proj_layers|iou_head_depth|subsample_layers"),
    ("", r"num_(adapter|pooler)_layers|aligner_num_add_layers|num_random_blocks|index_topk_blocks"),
    ("index", r".*(indexes|indices|layer_ids?|hook_ids|attn_idxs)"),
    ("index", r"(.*extract|mlp_only|moe|kv_source)_layers"),
    ("index", r".*target_layers|vision_feature_layers?|cross_attention_layers|rope_scaling_layers"),
    ("index", r"global_attention_blocks|accept_hidden_layer"),
    ("width", r"hidden_size_(global|per_layer_input)|latent_size"),
    ("width", r".*hidden_dimension|embed_dim_per_stage"),
    ("inner", r"intermediate_size_mlp"),
    ("", r".*(_loss|_coefficient|_cost|dropout|_prob|_rate|_act|_eps|_base|_theta|_factor)"),
    ("", r"sampling_rate|sample_rate|.*kernel.*|.*stride.*|.*padding|.*dilation.*|num_channels"),
    ("", r"mlp_ratios?|.*_ratio|.*_ratios|num_labels|num_feature_levels|.*_points|in_chans"),
    ("", r"num_feat_extract_layers|max_window_layers|.*postnet_layers|query_dim"),
    ("", r"(encoder|decoder)_num_points|num_kv_shared_layers|block_per_row|conv1d_width"),
    ("", r"num_(input_)?(mel_bins|channels(_out)?)|n_mels|first_k_dense_replace|num_codebooks"),
    ("", r".*(_interval|_period|_offset|_pattern|every_n_layers)|num_query_pool.*|mel_dim"),
    ("id", r".*_token(_id|_index|s?_ids|_idx)|(bos|eos|pad|im_start|im_end|im_newline|mask)_id"),
    ("id", r"(tag|subs)_pad_id|codec_.*_id|padding_idx|.*suppress_tokens|.*_stream_[be]os_id"),
    ("id", r"image_patch_id|forced_.*_id|.*_(boi|eoi|boa|eoa)_id|default_prompt_id|vocab_offset"),
    ("vocab", r".*vocab_size(_per_layer_input)?|n_vocab|.*_vocab|num_embeddings|type_vocab_sizes"),
    ("nested", r"block_configs|stage_configs|resnet_configs|resnet_head|down_ops"),
    ("nested", r"bridge_connector|out_point_positions2D"),
    ("codes", r"codebook_size|num_codevectors_per_group|num_hash_buckets|.*_hash_buckets"),
    ("window", r"attention_window|num_queries"),
    ("windows", r"num_windows|num_windows_side"),
    ("vocab", r"num_(bpe|wordpiece|qa|object|attr)_labels|head_out_channels|num_classes"),
    ("top", r".*experts?_(per_tok|topk|top_k)|.*moe_(top_?k|k)"),
    ("top", r"num_selected_experts|top_?k(_experts)?"),
    ("top", r"num_experts_per_token|moe_topk|num_activated_experts|router_top_?k|experts_top_?k"),
    ("groups", r"n_groups?|topk_groups?|num_expert_groups?|mamba_n_?groups|num_groups|o_groups"),
    ("groups", r"(q|k|v|intermediate|output)_groups|num_query_groups|mask_groups"),
    ("shared", r"n_shared_experts|num_shared_experts|moe_num_shared_experts"),
    ("experts", r".*num_(local_|routed_|total_)?experts|n_(routed_)?experts|.*zero_expert_num"),
    ("experts", r"moe_num_experts|ffn_num_experts|num_total_experts|expert_num|nb_experts"),
    ("kv", r".*(key_value|kv)_(attention_)?heads(_per_layer)?|multi_query_group_num|n_head_kv"),
    ("heads", r".*heads?(_per_(layer|stage))?(?<!_dim)(?<!d_head)(?<!dim_head)"),
    ("heads", r"n_head|num_heads|.*n_heads"),
    ("headdim", r".*(head_dim|head_size|headdim|d_head|dim_head)|d_kv|kv_channels|.*qk_.*dim"),
    ("headdim", r"rotary_dim|key_dim"),
    ("rank", r".*_rank|.*bottleneck_size"),
    ("inner", r".*(intermediate|ffn|feed_?forward|mlp).*(size|dim|units|hidden)s?|d_ff|dff|dim_ff"),
    ("inner", r".*mlp_dim|d_inner|n_inner|.*dim_feedforward|ffn_dim|linear_units|pf_dim"),
    ("layers", r"(num_|n_)?([a-z0-9]+_)*(layers?|blocks|stacks)|.*depth|depths|.*per_stage"),
    ("layers", r"num_layers_per_stack|stage_numb?_of_(layers|blocks)|num_block_repeats"),
    ("layers", r"language|vision|cross_encoder|num_self_attends_per_block|num_hidden_groups"),
    ("layers", r"block_sizes|.*num_flows|.*num_blocks"),
    ("positions", r".*(max|n|num)_.*positions?(_embeddings)?|n_ctx"),
    ("positions", r"max_seq.*|seq_length|max_length"),
    ("positions", r"max_pos_emb|context_length|.*_context_length|mem_len|max_ep_len|.*pos_bins"),
    ("positions", r"chunk_size|mamba_chunk_size|.*chunk_length|block_size|local_attention_window"),
    ("image", r"(input_|pretrain_)?(image|img)_size|crop_size|input_size"),
    ("patch", r"patch_size"),
    ("state", r".*(state_size|d_state|ssm_state_size|state_dim)"),
    ("width", r".*(hidden|embed|embedd?ing|proj).*(size|dim)s?"),
    ("width", r".*(projection|output|projector|width|feature).*(size|dim)s?"),
    ("width", r".*(d_model|n_embd|embed_dims?|hidden_dims?)"),
    ("width", r".*(emb_dim|emb_size|output_dims?|_dim|_dims)"),
    ("width", r"dim|width|.*_units|.*_channels?"),
    ("width", r".*num_filters|.*hidden_sizes?|.*_width|d_embed|d_latents"),
    ("width", r".*embed_dim_per_stage|.*_channel_list|.*feat_dim"),
    ("width", r".*features|.*_inplanes|.*sizes_out"),
    ("width", r"(coordinate|shape)_size|.*_filter_channels|conv_dim"),
    ("width", r"tdnn_dim|hidden_sizes|lru_width"),
)  # fmt: skip
_COMPILED = [(kind, re.compile(pattern)) for kind, pattern in _KINDS]
_seen: dict[str, str] = {}


def kind_of(name: str) -> str:
    """Return what a number under this name is; nothing for what is left as it is."""
    if name not in _seen:
        _seen[name] = next((kind for kind, rx in _COMPILED if rx.fullmatch(name)), "")
    return _seen[name]
