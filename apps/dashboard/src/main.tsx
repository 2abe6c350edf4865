import { App } from './app.js';
import { useCheckAddress } from './check/check-address.js';
import { CheckPage } from './check/check-page.js';
import { GuestPage } from './guest/guest-page.js';
import { showPage } from './page.js';
import { useInvitation } from './router.js';

function Page({ base }: { readonly base: string }) {
  const check = useCheckAddress();
  const invitation = useInvitation();
  // Without a token the check is for operators, who sign in.
  if (check !== undefined && check.token !== '') return <CheckPage key={check.token} base={base} {...check} />;
  if (invitation === undefined) return <App base={base} />;
  return <GuestPage key={invitation} base={base} invitation={invitation} />;
}

showPage((base) => <Page base={base} />);
