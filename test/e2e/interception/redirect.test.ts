/** What `token-sidecar redirect` makes a kernel do, in network namespaces made for it. */

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWorld, type World } from './start-world.ts';
import {
  API,
  API_ADDRESS,
  API_BY_IPV6,
  BODY,
  IMAGE_USER,
  INSIDE,
  OTHER,
  OUTSIDE,
  SIDECAR_USER,
} from './surroundings.ts';

const MAIN = join(import.meta.dirname, '../../../src/main.ts');

let world: World;
beforeAll(async () => {
  world = await startWorld('redirect');
});
afterAll(() => world.stop());

const command = (...flags: string[]) => world.client(process.execPath, [MAIN, 'redirect', ...flags]);

/** As the injector has it run, with more flags. */
const redirect = (...flags: string[]) => command('--exempt-user', SIDECAR_USER, ...flags);
const remove = () => command('--remove');

/** What the API saw of one request by curl, with the certificates of either. */
async function asked(url: string, ...flags: string[]): Promise<string | undefined> {
  const before = world.arrived.length;
  const trust = 'cat /run/token-sidecar/trust/ca.crt api.crt > both.crt && exec "$@"';
  const curl = ['curl', '--silent', '--show-error', '--cacert', 'both.crt', ...flags, url];
  expect(await world.client('sh', ['-c', trust, 'sh', ...curl])).toBe(BODY);
  await expect.poll(() => world.arrived.length).toBeGreaterThan(before);
  return world.arrived.at(-1)?.token;
}

/** By `redirect` as the world has it. */
const usual = () => redirect('--ports', '80,443');

/** What becomes of a packet of UDP: the kernel says so of the next one. */
const UDP = `
const socket = require('node:dgram').createSocket(process.argv[1].includes(':') ? 'udp6' : 'udp4');
socket.on('error', (error) => { process.stdout.write(error.code); process.exit(); });
socket.connect(Number(process.argv[2]), process.argv[1], () => {
  socket.send('hello', () => setTimeout(() => socket.send('again', () => setTimeout(() => {
    process.stdout.write('sent');
    process.exit();
  }, 50)), 50));
});
`;
const udp = (address: string, port: number) =>
  world.client(process.execPath, ['--eval', UDP, address, String(port)]);

describe('connections to a listed host', () => {
  it('come to the sidecar by IPv4 and by IPv6', async () => {
    expect(await asked(`https://${API}/`)).toBe('ours');
    expect(await asked(`https://${API_BY_IPV6}/`)).toBe('ours');
  });

  it('come there in a pod that has IPv6 alone', async () => {
    const inPod = (...args: string[]) => world.client('ip', args);
    await inPod('address', 'del', `${INSIDE.ipv4}/24`, 'dev', 'eth0');
    expect(await asked(`https://${API_BY_IPV6}/`)).toBe('ours');
    await inPod('address', 'add', `${INSIDE.ipv4}/24`, 'dev', 'eth0');
    await inPod('route', 'add', 'default', 'via', OUTSIDE.ipv4);
    expect(await asked(`https://${API}/`)).toBe('ours');
  });

  it('come there whatever address the app has chosen, and are sent to the host of that name', async () => {
    expect(await asked(`https://${API}/`, '--connect-to', `::${OUTSIDE.ipv4}:443`)).toBe('ours');
  });

  it('come there by HTTP in clear as well, which leaves over TLS', async () => {
    expect(await asked(`http://${API}/`)).toBe('ours');
  });
});

it('an app of the user that the sidecar’s image has, as many images of apps, is redirected', async () => {
  const image = ['setpriv', `--reuid=${IMAGE_USER}`, '--clear-groups'];
  const curl = ['curl', '--silent', '--insecure', `https://${API}/nonroot`];
  expect(await world.client(image[0] as string, [...image.slice(1), ...curl])).toBe(BODY);
  expect(world.arrived.findLast(({ path }) => path === '/nonroot')?.token).toBe('ours');
});

describe('what is left alone', () => {
  it('are other hosts', async () => {
    expect(await asked(`https://${OTHER}/`)).toBe('none');
    expect(await asked(`https://${API_ADDRESS}/`, '--insecure')).toBe('none');
  });

  it('are addresses of a link, which cannot be answered from loopback', async () => {
    expect(await asked(`https://[${OUTSIDE.onLink}%25eth0]/`, '--insecure', '--max-time', '20')).toBe('none');
  });

  it('are connections of the sidecar’s own user', async () => {
    const own = ['setpriv', `--reuid=${SIDECAR_USER}`, '--clear-groups'];
    const curl = ['curl', '--silent', '--cacert', 'api.crt', `https://${API}/own`];
    expect(await world.client(own[0] as string, [...own.slice(1), ...curl])).toBe(BODY);
    expect(world.arrived.findLast(({ path }) => path === '/own')?.token).toBe('none');
  });

  it.each([
    ['--excluded-ranges', '10.99.0.0/16'],
    ['--excluded-ranges', API_ADDRESS],
    ['--excluded-ports', '1-1000'],
    ['--ports', '80'],
  ])('is what %s %s says', async (...flags) => {
    await redirect(...flags);
    expect(await asked(`https://${API}/`)).toBe('none');
    await usual();
    expect(await asked(`https://${API}/`)).toBe('ours');
  });

  it('are ranges of IPv6 too, and no more than they say', async () => {
    await redirect('--excluded-ranges', 'fd99::/64');
    expect(await asked(`https://${API_BY_IPV6}/`)).toBe('none');
    await redirect('--excluded-ranges', 'fd98::/15');
    expect(await asked(`https://${API_BY_IPV6}/`)).toBe('none');
    await redirect('--excluded-ranges', 'fd98::/32,11.0.0.0/8');
    expect(await asked(`https://${API_BY_IPV6}/`)).toBe('ours');
    expect(await asked(`https://${API}/`)).toBe('ours');
    await usual();
  });
});

describe('UDP', () => {
  it.each([API_ADDRESS, OUTSIDE.ipv6])('to port 443 of %s is refused at once', async (address) => {
    expect(await udp(address, 443)).toBe('ECONNREFUSED');
  });

  // Nobody is there, which their machine says: it is asked, where before the packet did not leave.
  it.each(['10.99.1.77', 'fd99::77'])(
    'to other ports of %s is not, nor to 443 where that is said',
    async (address) => {
      expect(await udp(address, 443)).toBe('ECONNREFUSED');
      expect(await udp(address, 444)).toBe('sent');
      await redirect('--refused-udp-ports', 'none', '--ports', '443');
      expect(await udp(address, 443)).toBe('sent');
      await usual();
      expect(await udp(address, 443)).toBe('ECONNREFUSED');
    },
  );
});

describe('the command', () => {
  it('changes nothing by a second run, and leaves nothing behind when it has undone it', async () => {
    await usual();
    await usual();
    expect(await asked(`https://${API}/`)).toBe('ours');
    await remove();
    await remove();
    expect(await asked(`https://${API}/`)).toBe('none');
    expect(await udp('10.99.1.77', 443)).toBe('sent');
    await usual();
    expect(await asked(`https://${API}/`)).toBe('ours');
  });

  it.each([
    ['iptables-nft', 'ISTIO_OUTPUT', 'Istio'],
    ['iptables-legacy', 'ISTIO_OUTPUT', 'Istio'],
    ['iptables-nft', 'PROXY_INIT_OUTPUT', 'Linkerd'],
    ['iptables-legacy', 'PROXY_INIT_OUTPUT', 'Linkerd'],
  ])('refuses beside what %s has made as %s', async (iptables, chain, mesh) => {
    await world.client(iptables, ['--table', 'nat', '--new-chain', chain]);
    await expect(usual()).rejects.toMatchObject({
      code: 78,
      stderr: expect.stringContaining(`${mesh} redirects the connections of this pod`),
    });
    await world.client(iptables, ['--table', 'nat', '--delete-chain', chain]);
    await usual();
  });

  it('says what it lacks without NET_ADMIN', async () => {
    const lacking = ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-all'];
    const failure = world.client(lacking[0] as string, [
      ...lacking.slice(1),
      process.execPath,
      MAIN,
      'redirect',
    ]);
    await expect(failure).rejects.toMatchObject({ code: 78, stderr: expect.stringContaining('NET_ADMIN') });
  });
});
