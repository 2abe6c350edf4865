import { apiToken } from '../harness/bloom-node.js';
import { describeWith } from '../harness/needs.js';
import { browserSuite, type Stage, type StageOptions } from '../harness/stage.js';

/** A suite of streams, which need the optional compositor. */
export function hlsSuite(title: string, options: StageOptions, body: (stage: Stage) => void): void {
  browserSuite(title, { ...options, needs: ['node-av'] }, body);
}

/** A suite of streams without a browser: files are the participants. */
export function describeStreams(title: string, body: () => void): void {
  describeWith(['node-av', 'ffmpeg'], title, body);
}

export interface StreamAnswer {
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
  readonly tookMs: number;
}

/** Fetches any file of a node, with bytes as Latin-1 text. */
export async function fetchFrom(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; type: string | null; cacheControl: string | null; text: string }> {
  const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${apiToken}`, ...headers } });

  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    cacheControl: answer.headers.get('cache-control'),
    text: Buffer.from(await answer.arrayBuffer()).toString('latin1'),
  };
}

/** Fetches a file of the room's stream as a player does. */
export async function fetchFile(stage: Stage, room: string, name: string): Promise<StreamAnswer> {
  return fetchTimed(stage, `/hls/${room}/${name}`);
}

export async function fetchRecording(stage: Stage, id: string, name: string): Promise<StreamAnswer> {
  return fetchTimed(stage, `/recording/${id}/${name}`);
}

async function fetchTimed(stage: Stage, path: string): Promise<StreamAnswer> {
  const begun = performance.now();
  const answer = await fetch(`${stage.node.url}${path}`, {
    headers: { authorization: `Bearer ${apiToken}` },
  });

  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    text: await answer.text(),
    tookMs: performance.now() - begun,
  };
}

export async function addStream(stage: Stage, room: string, options: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await stage.api.request('POST', `/room/${room}/component`, { type: 'hls', options });
  if (status !== 201) throw new Error(`the stream was not created: ${status} ${JSON.stringify(body)}`);

  return body.data.id;
}

/** Resolves when the component is playable. */
export async function playable(stage: Stage, room: string): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (Date.now() < deadline) {
    const { components } = await stage.api.room(room);
    if (components.some((component: { properties: { playable?: boolean } }) => component.properties.playable === true))
      return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the stream did not become playable within 20 s');
}

/** Subscribes a stream with manual subscription to an endpoint. */
export async function choose(
  stage: Stage,
  { room, component }: { room: string; component: string },
  origin: string,
): Promise<void> {
  const answer = await fetch(`${stage.node.url}/room/${room}/component/${component}/subscribe`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ origins: [origin] }),
  });
  if (answer.status !== 201) throw new Error(`subscribing answered ${answer.status}: ${await answer.text()}`);
}
