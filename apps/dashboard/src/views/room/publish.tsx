import type { CreatedPeer } from '@bloom/server-sdk';
import { useState } from 'react';
import { useSession } from '../../session.js';
import { Copy, Dialog, Failure } from '../../ui/parts.js';
import { useAction } from '../../ui/use-action.js';

/** Adds a peer for a program that speaks WHIP, and shows what to enter there. */
export function Publish({ roomId, onClose }: { readonly roomId: string; readonly onClose: () => void }) {
  const { api, live } = useSession();
  const action = useAction();
  const [name, setName] = useState('OBS');
  const [seat, setSeat] = useState<CreatedPeer | null>(null);
  async function add(): Promise<void> {
    await action.run(async () => {
      const options = { metadata: { name: name.trim() }, permissions: { subscribe: false } };
      setSeat(await api.addPeer(roomId, options));
      live.touch(roomId);
    });
  }
  return (
    <Dialog title="Publish from OBS" onClose={onClose}>
      <Failure action={action} />
      {seat === null ? (
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault();
            void add();
          }}
        >
          <label className="field">
            <span>Name that others see</span>
            <input value={name} required maxLength={40} onChange={({ target }) => setName(target.value)} />
          </label>
          <button type="submit" className="primary" aria-disabled={action.busy}>
            Get an address and a token
          </button>
        </form>
      ) : (
        <div className="form">
          <p>In OBS: Settings, Stream, service “WHIP”. Any other program that speaks WHIP takes the same two.</p>
          <Copy label="Server" value={seat.whipUrl} />
          <Copy label="Bearer token" value={seat.token} />
          <p className="hint">
            The token is shown once. Set no B-frames (bframes=0) and a keyframe interval of 1 s; it is valid for a day.
          </p>
        </div>
      )}
    </Dialog>
  );
}
