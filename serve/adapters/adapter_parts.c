/* Parts that answers of all these interfaces share: see adapter.h. They have one text. */
#include "serve/adapters/adapter.h"

int32_t adapter_block(const drey_reply_part *part)
{
    return part->kind == DREY_REPLY_CONTENT     ? BLOCK_TEXT
           : part->kind == DREY_REPLY_REASONING ? BLOCK_REASONING
                                                : BLOCK_CALL;
}

void adapter_begin(answer *a)
{
    a->at = answer_first_record(a);
    drey_reply_begin(&a->readers[0], &a->request->reply);
}

void adapter_read(answer *a, const record *r, drey_reply_fn *on_part, void *user)
{
    if (r->kind == RECORD_TEXT)
        drey_reply_read(&a->readers[0], r->bytes, r->n, on_part, user);
}

void adapter_end(answer *a, drey_reply_fn *on_part, void *user)
{
    drey_reply_end(&a->readers[0], on_part, user);
}

void adapter_count(answer *a, const drey_reply_part *part)
{
    adapter_own(a)->n_calls += part->kind == DREY_REPLY_CALL;
    adapter_own(a)->n_whole += part->kind == DREY_REPLY_CALL_END;
}
