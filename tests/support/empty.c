/* Keeps the support library buildable while it has no other source. */
extern int support_is_linked;
int support_is_linked;
