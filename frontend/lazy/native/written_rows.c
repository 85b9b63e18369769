/* Rows written to, or combined with, rows of an array, one after the other: NumPy's `ufunc.at` takes each element for
   itself. See `ir/ops/host_indexing.py`. */

#include "core.h"
#include "vectors.h"
#include <stdint.h>
#include <string.h>

enum { SET, ADD, MUL, MAX, MIN };

typedef void (*Combine)(void *, const void *, const int64_t *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int);
#define COMBINED(type) PASTE(combined, type)

#define IS_NAN(x) ((x) != (x))
#define TYPE float
#define WIDE float
#include "written_rows.h"
#define TYPE double
#define WIDE double
#include "written_rows.h"
#undef IS_NAN
#define IS_NAN(x) 0
#define TYPE int8_t
#define WIDE uint32_t
#include "written_rows.h"
#define TYPE int16_t
#define WIDE uint32_t
#include "written_rows.h"
#define TYPE int32_t
#define WIDE uint32_t
#include "written_rows.h"
#define TYPE int64_t
#define WIDE uint64_t
#include "written_rows.h"
#define TYPE uint8_t
#define WIDE uint32_t
#include "written_rows.h"
#define TYPE uint16_t
#define WIDE uint32_t
#include "written_rows.h"
#define TYPE uint32_t
#define WIDE uint32_t
#include "written_rows.h"
#define TYPE uint64_t
#define WIDE uint64_t
#include "written_rows.h"

/* NumPy's characters of these types. */
static Combine combine_of(int kind, Py_ssize_t size)
{
    static const Combine signed_ones[] = {combined_int8_t, combined_int16_t, combined_int32_t, combined_int64_t};
    static const Combine unsigned_ones[] = {combined_uint8_t, combined_uint16_t, combined_uint32_t, combined_uint64_t};
    const int power = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
    if (kind == 'f')
        return power == 2 ? combined_float : power == 3 ? combined_double : NULL;
    return power < 0 ? NULL : kind == 'i' ? signed_ones[power] : kind == 'u' ? unsigned_ones[power] : NULL;
}

/* write_rows(out, updates, places, width, kind, size, mode): row i of `updates` is written to, or combined with, row
   places[i] (int64) of `out`, of `width` elements of so many bytes each; rows that `out` does not have are left out. `kind`
   is that of NumPy's dtype; mode 0 replaces, whatever the elements are. All arrays are contiguous. */
PyObject *write_rows(PyObject *module, PyObject *args)
{
    Py_buffer out, updates, places;
    Py_ssize_t width, size;
    int kind, mode;
    if (!PyArg_ParseTuple(args, "w*y*y*nCni:write_rows", &out, &updates, &places, &width, &kind, &size, &mode))
        return NULL;
    const Combine combine = mode == SET ? NULL : combine_of(kind, size);
    const int is_row = size > 0 && width > 0 && width <= PY_SSIZE_T_MAX / size;
    const Py_ssize_t count = places.len / (Py_ssize_t)sizeof(int64_t), row = is_row ? width * size : 1;
    if (mode < SET || mode > MIN || !is_row || (mode != SET && combine == NULL) || out.len % row ||
        updates.len != count * row)
        PyErr_SetString(PyExc_ValueError, "write_rows: arrays do not fit");
    else {
        const Py_ssize_t rows = out.len / row;
        Py_BEGIN_ALLOW_THREADS
        if (combine != NULL)
            combine(out.buf, updates.buf, places.buf, count, rows, width, mode);
        else
            for (Py_ssize_t i = 0; i < count; i++) {
                const int64_t place = ((const int64_t *)places.buf)[i];
                if (place >= 0 && place < rows)
                    memmove((char *)out.buf + place * row, (const char *)updates.buf + i * row, (size_t)row);
            }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&updates);
    PyBuffer_Release(&places);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
