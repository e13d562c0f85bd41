/* What a DataLoader's processes call for every batch, as functions of the interpreter's own kind
 * (python_loader.c says which). */
#ifndef HEADRACE_PROBES_PYTHON_PYTHON_LOADER_H_
#define HEADRACE_PROBES_PYTHON_PYTHON_LOADER_H_

#include "probes/python/python_api.h"

/* Whether the interpreter has what they use. */
int hrx_is_python_for_loaders(void);
/* Adds what Python calls to get them to a dict, by name: 0, or 1 with an exception. */
int hrx_python_loader_calls(PyObject* into);

#endif /* HEADRACE_PROBES_PYTHON_PYTHON_LOADER_H_ */
