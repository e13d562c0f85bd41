/* The calls that Python makes for every element, as functions of the interpreter's own kind: they
 * cost a fifth of calls by ctypes, which must do without knowing their arguments.
 *
 * The library serves programs without an interpreter, and any interpreter from 3.9 on: it neither
 * includes Python's header nor is it linked with it. What is used is part of the stable ABI,
 * declared here, and weak: null where there is no interpreter, or one that keeps its functions to
 * itself. Then hrx_python_calls() gives nothing and Python calls by ctypes. */

#include <stddef.h>
#include <stdint.h>

#include "probes/python/account_library.h"

#define HRX_PUBLIC __attribute__((visibility("default")))
#define OF_PYTHON extern __attribute__((weak, visibility("default")))

typedef struct PyObject_ PyObject;
typedef ptrdiff_t Py_ssize_t;
typedef PyObject* (*Function)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
typedef struct {
  const char* name;
  Function function;
  int flags;
  const char* documentation;
} PyMethodDef;
enum { METH_FASTCALL = 0x80 };

OF_PYTHON PyObject* PyCFunction_NewEx(PyMethodDef* method, PyObject* self, PyObject* module);
OF_PYTHON PyObject* PyObject_GetItem(PyObject* object, PyObject* key);
OF_PYTHON PyObject* PyObject_GetIter(PyObject* object);
OF_PYTHON PyObject* PyIter_Next(PyObject* iterator);
OF_PYTHON PyObject* PyList_New(Py_ssize_t size);
OF_PYTHON int PyList_Append(PyObject* list, PyObject* item);
OF_PYTHON int PyDict_SetItemString(PyObject* dict, const char* key, PyObject* value);
OF_PYTHON PyObject* PyErr_Occurred(void);
OF_PYTHON void PyErr_SetString(PyObject* type, const char* text);
OF_PYTHON PyObject* PyExc_TypeError;
OF_PYTHON long PyLong_AsLong(PyObject* number);
OF_PYTHON void* PyLong_AsVoidPtr(PyObject* number);
OF_PYTHON PyObject* PyLong_FromLongLong(long long number);
OF_PYTHON void Py_DecRef(PyObject* object);

static int is_count(Py_ssize_t count, Py_ssize_t wanted) {
  if (count == wanted) return 1;
  PyErr_SetString(PyExc_TypeError, "wrong number of arguments");
  return 0;
}

/* A number that is passed as a C int. 0: an exception is set. */
static int number_of(PyObject* object, uint32_t* number) {
  const long value = PyLong_AsLong(object);
  if (value == -1 && PyErr_Occurred()) return 0;
  *number = (uint32_t)value;
  return 1;
}

static int source_of(PyObject* address, struct hrx_source** source) {
  *source = (struct hrx_source*)PyLong_AsVoidPtr(address);
  return *source || !PyErr_Occurred();
}

#define ARGUMENTS PyObject *self, PyObject *const *arguments, Py_ssize_t count
#define CALL(name, wanted, ...)                                     \
  static PyObject* name(ARGUMENTS) {                                \
    uint32_t n[wanted];                                             \
    Py_ssize_t i;                                                   \
    (void)self;                                                     \
    if (!is_count(count, wanted)) return NULL;                      \
    for (i = 0; i < wanted; i++) {                                  \
      if (!number_of(arguments[i], &n[i])) return NULL;             \
    }                                                               \
    return PyLong_FromLongLong((long long)hrx_##name(__VA_ARGS__)); \
  }
CALL(begin, 1, n[0])
CALL(begin_after, 2, n[0], n[1])
CALL(end, 1, n[0])
CALL(end_one, 2, n[0], n[1])
CALL(end_some, 2, n[0], n[1])
CALL(end_idle, 2, n[0], n[1])
CALL(next_one, 1, n[0])
CALL(idle, 1, n[0])
CALL(pass_on, 3, n[0], n[1], n[2])
CALL(wait_in, 1, n[0])
CALL(wait_in_end, 1, n[0])
CALL(next_begin, 3, n[0], n[1], n[2])
CALL(next_end, 2, n[0], n[1])

static PyObject* ask(ARGUMENTS) {
  struct hrx_source* source;
  (void)self;
  if (!is_count(count, 1) || !source_of(arguments[0], &source)) return NULL;
  return PyLong_FromLongLong(hrx_ask(source));
}

static PyObject* got(ARGUMENTS) {
  struct hrx_source* source;
  uint32_t rows;
  (void)self;
  if (!is_count(count, 2) || !source_of(arguments[0], &source) || !number_of(arguments[1], &rows))
    return NULL;
  return PyLong_FromLongLong(hrx_got(source, rows));
}

/* items(dataset, indices, handle): [dataset[index] for index in indices], inside the operator,
 * which was entered for the first and is left here: every item is one element of it. */
static PyObject* items(ARGUMENTS) {
  PyObject *list, *indices, *index;
  uint32_t handle;
  Py_ssize_t got_count = 0;
  int failed, all_made;
  (void)self;
  if (!is_count(count, 3) || !number_of(arguments[2], &handle)) return NULL;
  list = PyList_New(0);
  indices = list ? PyObject_GetIter(arguments[1]) : NULL;
  failed = !indices;
  while (!failed && (index = PyIter_Next(indices)) != NULL) {
    PyObject* item;
    if (got_count++ > 0) hrx_next_one(handle);
    item = PyObject_GetItem(arguments[0], index);
    failed = !item || PyList_Append(list, item) != 0;
    if (item) Py_DecRef(item);
    Py_DecRef(index);
  }
  all_made = !failed && got_count > 0;
  if (!failed && PyErr_Occurred()) failed = 1; /* by the indices */
  if (indices) Py_DecRef(indices);
  if (!all_made) {
    hrx_end(handle);
  } else {
    hrx_end_one(handle, 1);
  }
  if (!failed) return list;
  if (list) Py_DecRef(list);
  return NULL;
}

#define METHOD(name) \
  { "hrx_" #name, name, METH_FASTCALL, NULL }
static PyMethodDef methods[] = {
    METHOD(begin),    METHOD(begin_after), METHOD(end),         METHOD(end_one),
    METHOD(end_some), METHOD(end_idle),    METHOD(next_one),    METHOD(idle),
    METHOD(pass_on),  METHOD(wait_in),     METHOD(wait_in_end), METHOD(next_begin),
    METHOD(next_end), METHOD(ask),         METHOD(got),         METHOD(items)};

static int is_python_here(void) {
  return PyCFunction_NewEx && PyObject_GetItem && PyObject_GetIter && PyIter_Next && PyList_New &&
         PyList_Append && PyDict_SetItemString && PyErr_Occurred && PyErr_SetString &&
         &PyExc_TypeError && PyLong_AsLong && PyLong_AsVoidPtr && PyLong_FromLongLong && Py_DecRef;
}

HRX_PUBLIC int hrx_python_calls(void* into) {
  PyObject* calls = (PyObject*)into;
  size_t i;
  if (!is_python_here()) return 1;
  for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
    PyObject* call = PyCFunction_NewEx(&methods[i], NULL, NULL);
    const int failed = !call || PyDict_SetItemString(calls, methods[i].name, call) != 0;
    if (call) Py_DecRef(call);
    if (failed) return 1; /* with an exception */
  }
  return 0;
}
