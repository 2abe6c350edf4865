import type { RoomOptions } from '@bloom/server-sdk';
import { useSession } from '../session.js';
import { type Field, Fields, optionsOf } from '../ui/fields.js';
import { Dialog, Failure } from '../ui/parts.js';
import { useAction } from '../ui/use-action.js';

const FIELDS: readonly Field[] = [
  {
    name: 'roomId',
    label: 'Name',
    hint: 'Letters, digits and hyphens; empty: a random one',
    pattern: '[A-Za-z0-9\\-]+',
  },
  { name: 'maxPeers', label: 'Maximum number of people', kind: 'number', hint: 'Empty: no limit' },
  {
    name: 'videoCodec',
    label: 'Video codec',
    options: ['', 'h264', 'vp8'],
    hint: 'Cameras need h264; without it, streams and recordings must be asked to take any codec',
  },
  {
    name: 'peerlessPurgeTimeout',
    label: 'Remove when empty',
    kind: 'number',
    min: 1,
    hint: 'After this many seconds; empty: never',
  },
  {
    name: 'peerDisconnectedTimeout',
    label: 'Remove people who lost their connection',
    kind: 'number',
    min: 1,
    hint: 'After this many seconds; empty: never',
  },
  { name: 'webhookUrl', label: 'Webhook', kind: 'url', hint: 'URL that receives each event of the room' },
  {
    name: 'dataEvents',
    label: 'Data channels sent to the backend',
    kind: 'list',
    hint: 'Labels such as chat, separated by commas; messages go to the webhook, and to subscribers that request them',
  },
];

/** Calls `onClose` with the id of the created room. */
export function NewRoom({ onClose }: { readonly onClose: (created?: string) => void }) {
  const { api } = useSession();
  const action = useAction();
  async function create(form: HTMLFormElement): Promise<void> {
    let id: string | undefined;
    const options = optionsOf(FIELDS, new FormData(form)) as RoomOptions;
    if (await action.run(async () => (id = (await api.createRoom(options)).room.id))) onClose(id);
  }
  return (
    <Dialog title="New room" onClose={() => onClose()}>
      <Failure action={action} />
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          void create(event.currentTarget);
        }}
      >
        <Fields fields={FIELDS} />
        <button type="submit" className="primary" aria-disabled={action.busy}>
          Create
        </button>
      </form>
    </Dialog>
  );
}
