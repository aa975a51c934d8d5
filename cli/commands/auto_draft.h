/* Which draft `-d auto` takes. */
#ifndef DREY_CLI_AUTO_DRAFT_H
#define DREY_CLI_AUTO_DRAFT_H

#include "cli/commands/models.h"

/* Sets m->drafter, m->draft and m->draft_path: of a model beside the target that has its tokens and
 * fits, of the target's own planes, of the heads beside it, of lookup and of none the one whose
 * plan promises most tokens a second: by what drey tune -m measured of it, where it did; m->why
 * says why. A policy that needs a draft gets one. Does nothing where the settings name a draft. */
void auto_draft_choose(models *m, const cli_settings *settings, int32_t n_context);

#endif
