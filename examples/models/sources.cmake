# The models and their data, for programs of other folders, too: each compiles them into itself.
set(example_models_folder ${CMAKE_CURRENT_LIST_DIR})
set(example_models_sources bert.cc densenet.cc example.cc gratings.cc interactions.cc
                           masked_sentences.cc ncf.cc nmt.cc position_embedding.cc transformer.cc
                           transformer_blocks.cc translations.cc)
list(TRANSFORM example_models_sources PREPEND ${example_models_folder}/)
