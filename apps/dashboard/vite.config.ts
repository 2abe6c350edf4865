import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv } from 'vite';

/** The node used by `npm run dev` and `npm run preview`. Otherwise the node itself serves the built page. */
const { BLOOM_URL: node = 'http://127.0.0.1:5002' } = loadEnv('', '.', 'BLOOM_URL');

export default defineConfig({
  // Relative paths: the node may be mounted below a path of another host.
  base: './',
  plugins: [react()],
  build: {
    target: 'es2022',
    chunkSizeWarningLimit: 700,
    // Who gets the page gets the licences of what is in it.
    license: { fileName: 'assets/licences.md' },
    // Warns on slow machines that plugins are slow.
    rolldownOptions: { input: ['index.html', 'guests.html'], checks: { pluginTimings: false } },
  },
  server: {
    proxy: {
      '^/(check|cluster|health|hls|invitation|node|recording|room|sip|whep)': node,
      '/socket': { target: node, ws: true },
    },
  },
});
