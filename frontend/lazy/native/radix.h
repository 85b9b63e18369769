/* Rows of keys of one width, WORD, sorted digit by digit; see `radix.c`. */

#define KEY RADIX(key)
#define ITEM RADIX(item)
#define DIGITS ((int)sizeof(WORD))
#define BLOCK ((int)(BLOCK_BYTES / sizeof(WORD)))
#define SIGN ((WORD)1 << (8 * sizeof(WORD) - 1))

typedef struct {
    WORD key;
    uint32_t at;
} ITEM;

/* An unsigned number in the order of an element: -0 is just below 0, or 0 where they are to be equal, and all NaN are
   the largest. */
static inline WORD KEY(WORD x, int kind, WORD infinity, int equal_zeros)
{
    if (kind == UNSIGNED)
        return x;
    if (kind == SIGNED)
        return x ^ SIGN;
    if ((x & (WORD)~SIGN) > infinity)
        return (WORD)-1;
    if (equal_zeros && x == SIGN)
        x = 0;
    return x ^ (SIGN | (WORD)-(x >> (8 * sizeof(WORD) - 1))); /* all bits of those below zero */
}

static inline WORD RADIX(element)(WORD key, int kind, WORD infinity)
{
    if (kind == UNSIGNED)
        return key;
    if (kind == SIGNED)
        return key ^ SIGN;
    if (key == (WORD)-1)
        return infinity | (infinity >> 1);
    return key ^ (SIGN | (WORD)((key >> (8 * sizeof(WORD) - 1)) - 1));
}

/* How many keys have each value of each digit. */
static inline void RADIX(tally)(WORD key, uint32_t count[DIGITS][256])
{
    for (int d = 0; d < DIGITS; d++)
        count[d][key >> (8 * d) & 255]++;
}

static void RADIX(values)(const WORD *in, WORD *out, WORD *room, Py_ssize_t n, int kind, WORD infinity)
{
    uint32_t count[DIGITS][256] = {{0}};
    WORD *from = out, *to = room;
    for (Py_ssize_t i = 0; i < n; i++)
        RADIX(tally)(out[i] = KEY(in[i], kind, infinity, 0), count);
    for (int d = 0; d < DIGITS; d++) {
        if (!places(count[d], n))
            continue;
        for (Py_ssize_t i = 0; i < n; i++)
            to[count[d][from[i] >> (8 * d) & 255]++] = from[i];
        WORD *const other = from;
        from = to, to = other;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = RADIX(element)(from[i], kind, infinity);
}

static void RADIX(order)(const WORD *in, uint32_t *out, ITEM *room, Py_ssize_t n, int kind, WORD infinity)
{
    uint32_t count[DIGITS][256] = {{0}};
    ITEM *from = room, *to = room + n;
    for (Py_ssize_t i = 0; i < n; i++) {
        from[i] = (ITEM){KEY(in[i], kind, infinity, 1), (uint32_t)i};
        RADIX(tally)(from[i].key, count);
    }
    for (int d = 0; d < DIGITS; d++) {
        if (!places(count[d], n))
            continue;
        for (Py_ssize_t i = 0; i < n; i++)
            to[count[d][from[i].key >> (8 * d) & 255]++] = from[i];
        ITEM *const other = from;
        from = to, to = other;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = from[i].at;
}

/* How many elements of a short row are less than each: some are compared with one at a time, in vectors. There is room
   for whole blocks. */
CLONES static void RADIX(ranks)(const WORD *keys, WORD *ranks, Py_ssize_t n)
{
    for (Py_ssize_t first = 0; first < n; first += BLOCK) {
        WORD own[BLOCK], before[BLOCK] = {0};
        memcpy(own, keys + first, sizeof own);
        for (Py_ssize_t j = 0; j < n; j++) {
            const WORD key = keys[j];
            for (int i = 0; i < BLOCK; i++)
                before[i] += key < own[i];
        }
        memcpy(ranks + first, before, sizeof before);
    }
}

static void RADIX(short_order)(const WORD *in, uint32_t *out, Py_ssize_t n, int kind, WORD infinity)
{
    WORD keys[SHORT] = {0}, ranks[SHORT];
    uint8_t equal[SHORT] = {0}; /* elements of a rank so far: those of equal ones are one */
    for (Py_ssize_t i = 0; i < n; i++)
        keys[i] = KEY(in[i], kind, infinity, 1);
    RADIX(ranks)(keys, ranks, n);
    for (Py_ssize_t i = 0; i < n; i++)
        out[ranks[i] + equal[ranks[i]]++] = (uint32_t)i;
}

/* All rows, one after the other; whether there was memory. */
static int RADIX(rows)(const void *in, void *out, Py_ssize_t rows, Py_ssize_t n, int kind, unsigned long long infinity,
                       int positions)
{
    for (Py_ssize_t i = 0; positions && n <= SHORT && i < rows; i++)
        RADIX(short_order)((const WORD *)in + i * n, (uint32_t *)out + i * n, n, kind, (WORD)infinity);
    if (positions && n <= SHORT)
        return 1;
    void *room = malloc(n * (positions ? 2 * sizeof(ITEM) : sizeof(WORD)));
    if (room == NULL)
        return 0;
    for (Py_ssize_t i = 0; i < rows; i++) {
        const WORD *row = (const WORD *)in + i * n;
        if (positions)
            RADIX(order)(row, (uint32_t *)out + i * n, room, n, kind, (WORD)infinity);
        else
            RADIX(values)(row, (WORD *)out + i * n, room, n, kind, (WORD)infinity);
    }
    free(room);
    return 1;
}

#undef KEY
#undef ITEM
#undef DIGITS
#undef BLOCK
#undef SIGN
#undef WORD
#undef RADIX
