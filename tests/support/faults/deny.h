/* Takes away what a system may refuse, by seccomp filters; for forked children, as there is no way
 * back. Each returns false where filters cannot be installed. */
#pragma once

#include <stdbool.h>

/* Opening with O_DIRECT fails with EINVAL. */
bool deny_direct(void);

/* io_uring_setup fails with the given errno; or io_uring_enter does, when only_use. */
bool deny_uring(int error, bool only_use);
