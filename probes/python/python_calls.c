/* The calls that Python makes for every element, as functions of the interpreter's own kind: they
 * cost a fifth of calls by ctypes, which must do without knowing their arguments.
 *
 * Where what is used of the interpreter is not there (python_api.h), hrx_python_calls() gives
 * nothing and Python calls by ctypes. */

#include <stdint.h>

#include "probes/python/account_library.h"
#include "probes/python/python_api.h"
#include "probes/python/python_loader.h"

#define HRX_PUBLIC __attribute__((visibility("default")))

int hrx_is_count(Py_ssize_t count, Py_ssize_t wanted) {
  if (count == wanted) return 1;
  PyErr_SetString(PyExc_TypeError, "wrong number of arguments");
  return 0;
}

/* A number that is passed as a C int. 0: an exception is set. */
int hrx_number_of(PyObject* object, uint32_t* number) {
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
    if (!hrx_is_count(count, wanted)) return NULL;                  \
    for (i = 0; i < wanted; i++) {                                  \
      if (!hrx_number_of(arguments[i], &n[i])) return NULL;         \
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
  if (!hrx_is_count(count, 1) || !source_of(arguments[0], &source)) return NULL;
  return PyLong_FromLongLong(hrx_ask(source));
}

static PyObject* got(ARGUMENTS) {
  struct hrx_source* source;
  uint32_t rows;
  (void)self;
  if (!hrx_is_count(count, 2) || !source_of(arguments[0], &source) ||
      !hrx_number_of(arguments[1], &rows))
    return NULL;
  return PyLong_FromLongLong(hrx_got(source, rows));
}

#define METHOD(name) \
  { "hrx_" #name, name, METH_FASTCALL, NULL }
static PyMethodDef methods[] = {
    METHOD(begin),       METHOD(begin_after), METHOD(end),      METHOD(end_one), METHOD(end_some),
    METHOD(end_idle),    METHOD(next_one),    METHOD(idle),     METHOD(pass_on), METHOD(wait_in),
    METHOD(wait_in_end), METHOD(next_begin),  METHOD(next_end), METHOD(ask),     METHOD(got)};

static int is_python_here(void) {
  return PyCFunction_NewEx && PyDict_SetItemString && PyErr_Occurred && PyErr_SetString &&
         &PyExc_TypeError && PyLong_AsLong && PyLong_AsVoidPtr && PyLong_FromLongLong && Py_DecRef;
}

int hrx_add_call(PyObject* into, PyMethodDef* call) {
  PyObject* const function = PyCFunction_NewEx(call, NULL, NULL);
  const int failed = !function || PyDict_SetItemString(into, call->name, function) != 0;
  Py_DecRef(function);
  return failed;
}

HRX_PUBLIC int hrx_python_calls(void* into) {
  size_t i;
  if (!is_python_here()) return 1;
  for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
    if (hrx_add_call((PyObject*)into, &methods[i])) return 1;
  }
  return hrx_is_python_for_loaders() ? hrx_python_loader_calls((PyObject*)into) : 0;
}
