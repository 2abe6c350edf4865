import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv } from 'vite';

/** The node that `npm run dev` and `npm run preview` talk to; otherwise the built page is served by the node itself. */
const { BLOOM_URL: node = 'http://127.0.0.1:5002' } = loadEnv('', '.', 'BLOOM_URL');

export default defineConfig({
  // Relative paths: the node may sit below a path of somebody else's host.
  base: './',
  plugins: [react()],
  build: {
    target: 'es2022',
    chunkSizeWarningLimit: 700,
    // Says of slow machines that plugins are slow.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  server: {
    proxy: {
      '^/(cluster|health|hls|node|recording|room|sip|whep)': node,
      '/socket': { target: node, ws: true },
    },
  },
});
