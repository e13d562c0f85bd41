/* A library that says it writes another ABI; nothing else of it must be called. */
unsigned hrx_account_abi(void) { return 2; }
