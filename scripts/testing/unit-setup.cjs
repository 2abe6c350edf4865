// Runs before each unit test file. Only the first file that loads the native Opus codec in a jest process can use it,
// so unit tests take the WebAssembly build. Calls in end-to-end tests use the native one.
process.env.OPUS_FORCE_WASM = '1';
