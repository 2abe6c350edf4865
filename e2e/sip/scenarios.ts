/** Behaviour of the test phones, as sipp scenarios. */

const header = '<?xml version="1.0" encoding="UTF-8" ?>\n<scenario name="phone">';

const answer = (status: string, more = '', body = '') => `
<send><![CDATA[
SIP/2.0 ${status}
[last_Via:]
[last_From:]
[last_To:];tag=[call_number]
[last_Call-ID:]
[last_CSeq:]
[last_Record-Route:]
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
${more}Content-Length: ${body === '' ? '0' : '[len]'}

${body}]]></send>`;

const plain = (status: string) => answer(status).replace(';tag=[call_number]', '');

const sdp = (direction: string, version: number) => `v=0
o=phone 1 ${version} IN IP4 [local_ip]
s=-
c=IN IP4 [media_ip]
t=0 0
m=audio [media_port] RTP/AVP 0 101
a=rtpmap:0 PCMU/8000
a=rtpmap:101 telephone-event/8000
a=${direction}
`;

const withSdp = (status: string) => answer(status, 'Content-Type: application/sdp\n', sdp('sendrecv', 1));
const receive = (request: string, more = '') => `\n<recv request="${request}" ${more}/>`;
const receiveInvite = receive('INVITE', 'rrs="true"');
const wait = (ms: number) => `\n<pause milliseconds="${ms}"/>`;
const end = '\n</scenario>\n';

/** A request from the phone inside the dialog: in reverse, through the same proxies. */
const request = (method: string, sequence: number, { more = '', body = '' } = {}) => `
<send${method === 'ACK' ? '' : ' retrans="500"'}><![CDATA[
${method} [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: [$me]
To: [$you]
[last_Call-ID:]
CSeq: ${sequence} ${method}
[routes]
Max-Forwards: 70
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
${more}Content-Length: ${body === '' ? '0' : '[len]'}

${body}]]></send>`;

/** Swaps the parties for requests from the phone: its own To becomes the From. */
const remember = `
<recv request="ACK" rrs="false"><action>
<ereg regexp=".*" search_in="hdr" header="To:" assign_to="me"/>
<ereg regexp=".*" search_in="hdr" header="From:" assign_to="you"/>
</action></recv>`;

const reinvite = (sequence: number, direction: string) =>
  `${request('INVITE', sequence, { more: 'Content-Type: application/sdp\n', body: sdp(direction, sequence + 1) })}
<recv response="100" optional="true"/>
<recv response="200"/>${request('ACK', sequence)}`;

/** Rings briefly, answers, echoes the sound, and waits for the BYE. */
export const answers = `${header}${receiveInvite}${answer('180 Ringing')}${wait(100)}${withSdp('200 OK')}${receive('ACK')}${receive('BYE')}${plain('200 OK')}${end}`;

/** Answers, and leaves its sound to another program. */
export const answersAt = (address: string, port: number) =>
  answers.replace('[media_ip]', address).replace('[media_port]', String(port));

/** Answers, and refuses every change of the call. */
export const answersOnce = `${header}${receiveInvite}${withSdp('200 OK')}${receive('ACK')}${receiveInvite}${answer('488 Not Acceptable Here').replace(';tag=[call_number]', '')}${receive('ACK')}${receive('BYE')}${plain('200 OK')}${end}`;

/** Refuses the call. */
export const refuses = (status: string, more = '') =>
  `${header}${receiveInvite}${answer('180 Ringing')}${answer(status, more)}${receive('ACK')}${end}`;

/** Rings until it is cancelled. */
export const ringsUntilCancelled = `${header}
<recv request="INVITE"><action>
<ereg regexp=".*" search_in="hdr" header="Via:" occurrence="1" assign_to="proxyVia"/>
<ereg regexp=".*" search_in="hdr" header="Via:" occurrence="2" assign_to="callerVia"/>
<ereg regexp=".*" search_in="hdr" header="CSeq:" assign_to="inviteSequence"/>
</action></recv>${answer('180 Ringing')}
<recv request="CANCEL"/>${plain('200 OK')}${answer('487 Request Terminated')
  .replace('[last_Via:]', 'Via: [$proxyVia]\nVia: [$callerVia]')
  .replace('[last_CSeq:]', 'CSeq: [$inviteSequence]')}${receive('ACK')}${end}`;

/** Early media in 183, then the answer, and hangs up by itself. */
export const hangsUp = `${header}${receiveInvite}${withSdp('183 Session Progress')}${wait(300)}${withSdp('200 OK')}${remember}${wait(500)}${request('BYE', 1)}
<recv response="200"/>${end}`;

/** Answers, holds, resumes, asks OPTIONS, hangs up. */
export const holds = `${header}${receiveInvite}${withSdp('200 OK')}${remember}${wait(300)}${reinvite(1, 'sendonly')}${wait(400)}${reinvite(2, 'sendrecv')}${wait(400)}${request('OPTIONS', 3)}
<recv response="200"/>${request('BYE', 4)}
<recv response="200"/>${end}`;

/** A registrar that challenges every request. */
export const challengesForEver = `${header}
<recv request="REGISTER"/>
<label id="1"/>
${answer('401 Unauthorized', 'WWW-Authenticate: Digest realm="loop", nonce="[branch]", stale=TRUE, algorithm=MD5, qop="auth"\n')}
<recv request="REGISTER" next="1"/>${end}`;
