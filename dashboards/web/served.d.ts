// Set by the build: false in the bundle of a report of one file, which is without the pages that ask
// a server.
declare const SERVED: boolean;
