import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** The node that `npm run dev` talks to; the built page is served by the node itself. */
const node = 'http://127.0.0.1:5002';

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
      '/room': node,
      '/health': node,
      '/hls': node,
      '/socket': { target: node, ws: true },
    },
  },
});
