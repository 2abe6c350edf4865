// What tests need from the machine. Without it they are skipped, and the title tells the runner why.
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { describe, test } from '@jest/globals';
import { containersUnavailable } from '../../scripts/deploy/container-image.mjs';
import { lastReleaseFolder } from '../../scripts/testing/last-release.mjs';
import { labUnavailable } from '../hosts/lab.js';

export const nightly = Boolean(process.env['BLOOM_NIGHTLY']);

/** Returns the path of the first of these programs that is installed. */
export function findProgram(...names: string[]): string | undefined {
  const folders = ['/usr/bin', ...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * `BLOOM_CHROMIUM` (a path) first, then the usual names. The headless shell is the same Chromium without desktop
 * windows and permissions, at a third of the CPU time; nightly runs use the whole browser.
 */
export function findChromium(whole = process.env['BLOOM_NIGHTLY'] !== undefined): string | undefined {
  const chosen = process.env['BLOOM_CHROMIUM'];
  if (chosen !== undefined) return isExecutable(chosen) ? chosen : undefined;
  const shells = whole ? [] : ['chromium-headless-shell'];
  return findProgram(...shells, 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable');
}

export function findFirefox(): string | undefined {
  return findProgram('firefox-esr', 'firefox');
}

function resolves(module: string): boolean {
  try {
    createRequire(import.meta.url).resolve(module);
    return true;
  } catch {
    return false;
  }
}

const installed = (...programs: string[]): boolean => programs.every((name) => findProgram(name) !== undefined);

const CAMERA_PARTS = `
import gi
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gst, GstRtspServer
Gst.init(None)
parts = ["x264enc", "x265enc", "voaacenc", "alawenc", "opusenc", "rtph264pay"]
assert all(Gst.ElementFactory.find(part) for part in parts)
`;

const WEBRTC_PARTS = `
import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import Gst, GstWebRTC
Gst.init(None)
parts = ["webrtcbin", "nicesrc", "x264enc", "opusenc", "rtph264pay", "vp8dec"]
assert all(Gst.ElementFactory.find(part) for part in parts)
`;

const checks = {
  nightly: () => nightly,
  /** An RTSP server and its encoders. */
  cameras: () => spawnSync('/usr/bin/python3', ['-c', CAMERA_PARTS]).status === 0,
  /** A proxy in front of a node. */
  caddy: () => installed('caddy'),
  /** A load balancer that sends PROXY headers. */
  haproxy: () => installed('haproxy'),
  prometheus: () => installed('prometheus'),
  /** The whole browser, which some suites require. */
  chromium: () => findChromium(true) !== undefined,
  firefox: () => findFirefox() !== undefined,
  erlang: () => installed('erl'),
  ffmpeg: () => installed('ffmpeg', 'ffprobe'),
  /** A player for people who watch without a browser. */
  mpv: () => installed('mpv'),
  /** podman as root, and what it needs to build and run images. */
  containers: () => containersUnavailable() === undefined,
  /** Firewall rules, in the network of the test alone. */
  iptables: () => process.getuid?.() === 0 && installed('iptables', 'unshare'),
  /** Several hosts on this machine. */
  'network namespaces': () => labUnavailable() === undefined,
  bash: () => installed('bash'),
  zsh: () => installed('zsh'),
  fish: () => installed('fish'),
  /** The optional compositor of streams. */
  'node-av': () => resolves('node-av/lib'),
  /** A WebRTC client in Python, from Debian. */
  aiortc: () => spawnSync('/usr/bin/python3', ['-c', 'import aiortc, aiohttp']).status === 0,
  /** The WebRTC element of GStreamer. */
  webrtcbin: () => spawnSync('/usr/bin/python3', ['-c', WEBRTC_PARTS]).status === 0,
  /** scripts/test.mjs sets an empty path if it could not install them. */
  'installed examples': () => process.env['BLOOM_EXAMPLES'] !== '',
  /** scripts/test.mjs builds it, and reports if it cannot. */
  'the last release': () => lastReleaseFolder() !== undefined,
  openssl: () => installed('openssl'),
  phones: () => installed('kamailio', 'baresip', 'sipp'),
  /** As root only. */
  'tmpfs mounts': () => process.getuid?.() === 0 && spawnSync('mount', ['--version']).status === 0,
};

export type Need = keyof typeof checks;

/** Returns the first need that this machine does not meet. */
export function missing(needs: readonly Need[]): Need | undefined {
  return needs.find((need) => !checks[need]());
}

const skipped = (title: string, need: Need): string =>
  `${title} ${need === 'nightly' ? '[nightly]' : `[needs ${need}]`}`;

/** Returns `describe` if all needs are met, else a skip. */
export function describeWith(needs: readonly Need[], title: string, body: () => void): void {
  const need = missing(needs);
  if (need === undefined) describe(title, body);
  else describe.skip(skipped(title, need), body);
}

/** Returns `test` if all needs are met, else a skip. */
export function testWith(
  conditions: readonly Need[] | { needs: readonly Need[]; timeoutMs: number },
  title: string,
  body: () => Promise<void> | void,
): void {
  const { needs, timeoutMs } = 'needs' in conditions ? conditions : { needs: conditions, timeoutMs: undefined };
  const need = missing(needs);
  if (need === undefined) test(title, body, timeoutMs);
  else test.skip(skipped(title, need), body, timeoutMs);
}
