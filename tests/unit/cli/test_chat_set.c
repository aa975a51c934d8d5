/* Sampling that a model's file recommends, as drey chat shows it. */
#include "cli/chat/chat_set.h"
#include "support/gguf_writer.h"
#include "support/temp_dir.h"
#include "support/test.h"

TEST(recommended_sampling)
{
    char text[160];
    gguf_writer w = {0};
    writer_begin(&w, 0, 4);
    writer_key_text(&w, "general.architecture", "llama");
    writer_key_f32(&w, "general.sampling.temp", 0.6F);
    writer_key_i32(&w, "general.sampling.top_k", 20);
    writer_key_f32(&w, "general.sampling.top_p", 0.95F);
    assert_true(writer_save(&w, temp_path("model.gguf")));
    chat_read_recommended(temp_path("model.gguf"), text, sizeof text);
    assert_string_equal(text, "temperature 0.6, top-k 20, top-p 0.95");
    chat_read_recommended(temp_path("model.gguf"), text, 20);
    assert_string_equal(text, "temperature 0.6, to");
    writer_free(&w);
    chat_read_recommended(temp_path("none.gguf"), text, sizeof text);
    assert_string_equal(text, "");
}

TEST_GROUP(temp_dir_set_up, temp_dir_tear_down)
