import { expect, it } from 'vitest';
import { RunningCommand } from '../support/run-command.ts';

const LISTENERS = ['listen', 'admin-listen', 'issuer-listen', 'issuer-admin-listen', 'api-listen'];

it('the demo with --dpop shows a bound token, what a thief gets, and nothing to steal', async () => {
  const flags = LISTENERS.map((flag) => `--${flag}=127.0.0.1:0`);
  const demo = new RunningCommand(['demo', '--dpop', '--token-lifetime=2s', ...flags]);
  const [, thumbprint] = await demo.output(
    /The token is bound to the sidecar's key \(thumbprint ([\w-]{43})\)\./,
  );
  await demo.output(/A thief tries the token as Bearer, without the key: the API says 401\./);
  const [, proxy = '', api = ''] = await demo.output(
    /curl (\S+) {2,}# 200: through the sidecar\n {2}curl -i (\S+) {2,}# 401: around it/,
  );
  expect(demo.stdout).toContain('export TOKEN_SIDECAR_PROOF_OF_POSSESSION=dpop');

  for (const query of ['', '?page=2']) {
    const served = await fetch(`${proxy}${query}`, { headers: { connection: 'close' } });
    expect(served.status).toBe(200);
    expect(await served.json()).toMatchObject({ caller: { tokenIsBoundTo: thumbprint } });
  }
  const refused = await fetch(api, { headers: { connection: 'close' } });
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toMatch(/^DPoP realm="demo", algs="ES256 /);

  // The app's requests go on with the next token, which is bound to the same key.
  await demo.output(/renewed the token ahead of its end.*\(the app: \d+ requests, 0 failed\)/);
  demo.process.kill('SIGINT');
  expect(await demo.exited).toEqual({ code: 0, signal: null });
  expect(demo.stdout).toMatch(/The sidecar has stopped\. {2}\(the app: \d+ requests, 0 failed\)/);
  expect(demo.stdout + demo.stderr).not.toMatch(/eyJ|PRIVATE KEY/);
});

it('without --dpop it says nothing of keys, and its tokens are bearer tokens', async () => {
  const flags = LISTENERS.map((flag) => `--${flag}=127.0.0.1:0`);
  const demo = new RunningCommand(['demo', ...flags]);
  const [, proxy = ''] = await demo.output(/curl (\S+) {2,}# 200: through the sidecar[\s\S]*Ctrl-C ends/);
  const served = await fetch(proxy, { headers: { connection: 'close' } });
  expect(Object.keys(((await served.json()) as { caller: object }).caller)).not.toContain('tokenIsBoundTo');
  demo.process.kill('SIGINT');
  expect(await demo.exited).toEqual({ code: 0, signal: null });
  expect(demo.stdout).not.toMatch(/bound|thief|PROOF_OF_POSSESSION/);
});
