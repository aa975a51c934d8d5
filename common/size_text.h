/* Sizes as text for a person. */
#pragma once

/* "1.04G", "800M", "12.5K", "17": three digits and a binary unit, as --memory takes them. */
const char *format_bytes(char out[static 16], double bytes);
