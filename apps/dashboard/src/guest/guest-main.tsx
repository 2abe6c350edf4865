import { useCheckAddress } from '../check/check-address.js';
import { CheckPage } from '../check/check-page.js';
import { showPage } from '../page.js';
import { useInvitation } from '../router.js';
import { GuestPage } from './guest-page.js';

/** The page of a node that serves guests only. */
function Guests({ base }: { readonly base: string }) {
  const check = useCheckAddress();
  const invitation = useInvitation();
  if (check !== undefined) return <CheckPage key={check.token} base={base} {...check} />;
  if (invitation !== undefined) return <GuestPage key={invitation} base={base} invitation={invitation} />;
  return (
    <main className="sign-in">
      <h1>No invitation</h1>
      <p>To join a call, open the whole link that you were sent.</p>
    </main>
  );
}

showPage((base) => <Guests base={base} />);
