// Before each unit test file. The native Opus codec belongs to the first file that loads it in a process of jest, so that a
// second one could not use it: these tests take its WebAssembly build. Calls of the end-to-end tests run the native one.
process.env.OPUS_FORCE_WASM = '1';
