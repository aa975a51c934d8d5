/* Sizes and rates as text for a person. */
#pragma once

/* "1.04G", "800M", "12.5K", "17": three digits and a binary unit, as --memory takes them. */
const char *format_bytes(char out[static 16], double bytes);
/* The same in memory of the block that it is in. */
#define SIZE_TEXT(bytes) format_bytes((char[16]){0}, (double)(bytes))
/* The same of what is needed at least: no fewer bytes than that. */
const char *format_bytes_up(char out[static 16], double bytes);

/* "0.354", "2.50", "12.3", "1280": tokens per second that were measured. */
const char *format_rate(char out[static 16], double per_s);
/* "0.35", "2.5", "12": the same of what is expected, which is not known better. */
const char *format_rate_about(char out[static 16], double per_s);
