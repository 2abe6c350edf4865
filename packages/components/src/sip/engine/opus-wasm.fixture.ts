/**
 * Imported before anything that loads the codec: tests of one process each have a context of their own, and the native
 * build belongs to the first one that loads it. The native build is what the calls of the end-to-end tests run with.
 */
process.env['OPUS_FORCE_WASM'] = '1';
