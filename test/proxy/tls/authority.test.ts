import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  GeneralName,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_subjectAltName,
  id_kp_serverAuth,
  SubjectAlternativeName,
} from '@peculiar/asn1-x509';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  commonName,
  extension,
  type KeyPair,
  newKeyPairNow,
  signCertificate,
  validity,
} from '../../../src/platform/x509/certificate.ts';
import { createAuthority } from '../../../src/proxy/tls/interception-ca.ts';
import { garbageCollector } from '../../support/collect-garbage.ts';

type Authority = ReturnType<typeof createAuthority>;

type LeafCertificate = ReturnType<Authority['issue']>;

const LEAF_MS = 24 * 3_600_000;

const NOW_MS = Date.now();
const DAY_MS = 24 * 3_600_000;
const WEEK_MS = 7 * DAY_MS;
const NAMES = ['api.example.com', '*.wild.example.org'];
const authority = createAuthority({ names: NAMES, nowMs: NOW_MS });

/** What Node (OpenSSL) says to a client that trusts the root and asks for `name`; undefined where it is content. */
async function verdictOn(
  name: string,
  { root, issue }: Authority,
  issuedAtMs = NOW_MS,
): Promise<string | undefined> {
  const { chain, key } = issue(name, issuedAtMs);
  const server = createServer({ cert: chain, key }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
  });
  // The client's verdict is asked below; what the server makes of it is not.
  server.on('tlsClientError', () => {});
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket: TLSSocket = connect({ socket: connectTcp(port, '127.0.0.1'), servername: name, ca: root });
  return (await new Promise((resolve) => {
    socket.once('secureConnect', () => resolve(undefined));
    socket.once('error', (error) => resolve(error.message));
  }).finally(() => socket.destroy())) as string | undefined;
}

const OTHER = { dNSName: 'bank.example.net' };

/** What somebody has who has read the sidecar's memory: the intermediate's key, and the means to sign with it. */
function steal() {
  const made: KeyPair[] = [];
  const newKeys = () => {
    const pair = newKeyPairNow();
    made.push(pair);
    return pair;
  };
  const { root, issue } = createAuthority({ names: NAMES, nowMs: NOW_MS, newKeys });
  const [, keys, leaf] = made as [KeyPair, KeyPair, KeyPair];
  const { chain } = issue('api.example.com', NOW_MS);
  const intermediate = chain.slice(chain.lastIndexOf('-----BEGIN'));
  const issuer = AsnConvert.parse(new X509Certificate(intermediate).raw, Certificate).tbsCertificate.subject;
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const forge = (names: readonly Partial<GeneralName>[]): LeafCertificate => {
    const forged = signCertificate(
      {
        issuer,
        subject: commonName('bank.example.net'),
        publicKey: leaf.publicKey,
        validity: validity(NOW_MS - 1000, NOW_MS + LEAF_MS),
        extensions: [
          extension.of(id_ce_basicConstraints, new BasicConstraints(), true),
          extension.of(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
          ...(names.length === 0
            ? []
            : [
                extension.of(
                  id_ce_subjectAltName,
                  new SubjectAlternativeName(names.map((name) => new GeneralName(name))),
                ),
              ]),
          extension.authorityKeyIdentifier(keys.publicKey),
        ],
      },
      keys.privateKey,
    );
    return { chain: forged + intermediate, key, expiresAtMs: NOW_MS + LEAF_MS };
  };
  return { root, forge };
}

describe('the certificate authority for interception', () => {
  it.each(['api.example.com', 'a.wild.example.org', 'b.a.wild.example.org'])(
    'is accepted by clients for %s',
    async (name) => {
      expect(await verdictOn(name, authority)).toBeUndefined();
    },
  );

  it.each([
    ['a name that is not listed', 'bank.example.net', 'permitted subtree violation'],
    ['a name that ends as a listed one does', 'notapi.example.com', 'permitted subtree violation'],
    ['the name that a listed one is below', 'example.com', 'permitted subtree violation'],
    ['a name below an exact one', 'x.api.example.com', 'excluded subtree violation'],
    ['a name with a listed one at its front', 'api.example.com.evil.net', 'permitted subtree violation'],
  ])('cannot issue a certificate for %s', async (_, name, why) => {
    expect(await verdictOn(name, authority)).toBe(why);
  });

  it.each([
    ['an address', [{ iPAddress: '127.0.0.1' }], 'excluded subtree violation'],
    ['an address of IPv6', [{ iPAddress: '::1' }], 'excluded subtree violation'],
    ['a name beside a listed one', [{ dNSName: 'api.example.com' }, OTHER], 'permitted subtree violation'],
    ['all names of a domain', [{ dNSName: '*.example.com' }], 'permitted subtree violation'],
    ['all names below an exact one', [{ dNSName: '*.api.example.com' }], 'excluded subtree violation'],
    ['a common name alone', [], 'permitted subtree violation'],
  ])('cannot be misused with its stolen key for %s', async (_, names, why) => {
    const { root, forge } = steal();
    expect(await verdictOn('bank.example.net', { root, issue: () => forge(names) })).toBe(why);
  });

  it('allows a name below an exact one if that is listed too', async () => {
    const both = createAuthority({ names: ['example.com', 'api.example.com'], nowMs: NOW_MS });
    expect(await verdictOn('example.com', both)).toBeUndefined();
    expect(await verdictOn('api.example.com', both)).toBeUndefined();
  });

  it('is new at each start: one of another start is not trusted', async () => {
    const other = createAuthority({ names: NAMES, nowMs: NOW_MS });
    expect(await verdictOn('api.example.com', { ...other, root: authority.root })).toBeDefined();
  });

  it('is valid for a day, with a week of tolerance for slow clocks', async () => {
    const { chain, expiresAtMs } = authority.issue('api.example.com', NOW_MS);
    const leaf = new X509Certificate(chain);
    expect(expiresAtMs).toBe(NOW_MS + LEAF_MS);
    expect(leaf.validToDate.getTime()).toBe(Math.floor(expiresAtMs / 1000) * 1000);
    expect(NOW_MS - leaf.validFromDate.getTime()).toBeGreaterThanOrEqual(WEEK_MS);
    expect(leaf.ca).toBe(false);
    expect(leaf.subjectAltName).toBe('DNS:api.example.com');
    expect(await verdictOn('api.example.com', authority, NOW_MS - LEAF_MS - 1000)).toBe(
      'certificate has expired',
    );
  });

  it.each([
    ['six days', WEEK_MS - DAY_MS, undefined],
    ['eight days', WEEK_MS + DAY_MS, 'certificate is not yet valid'],
  ])(
    'made while the clock was %s ahead has as its verdict at the right time: %s',
    async (_, aheadMs, verdict) => {
      const ahead = createAuthority({ names: NAMES, nowMs: NOW_MS + aheadMs });
      expect(await verdictOn('api.example.com', ahead, NOW_MS + aheadMs)).toBe(verdict);
    },
  );

  it('says in critical basic constraints which certificates are CAs', () => {
    const certificates = authority
      .issue('api.example.com', NOW_MS)
      .chain.match(/-----BEGIN[\s\S]+?-----END.+/g);
    const [leaf, intermediate] = (certificates ?? []).map((pem) => new X509Certificate(pem));
    const root = new X509Certificate(authority.root);
    expect([leaf?.ca, intermediate?.ca, root.ca]).toEqual([false, true, true]);
    // basicConstraints, critical (RFC 5280 §4.2.1.9).
    const critical = Buffer.from('0603551d130101ff', 'hex');
    for (const certificate of [leaf, intermediate, root])
      expect(certificate?.raw.includes(critical)).toBe(true);
  });

  it('forgets the key of its root after signing', async () => {
    const collect = garbageCollector();
    const made: WeakRef<KeyPair['privateKey']>[] = [];
    const kept = createAuthority({
      names: NAMES,
      nowMs: NOW_MS,
      newKeys: () => {
        const keys = newKeyPairNow();
        made.push(new WeakRef(keys.privateKey));
        return keys;
      },
    });
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    // The root's, the intermediate's; that of the leaves is kept as text.
    expect(made).toHaveLength(3);
    expect(made[0]?.deref()).toBeUndefined();
    expect(made[1]?.deref()).toBeDefined();
    expect(kept.issue('api.example.com', NOW_MS).chain).toContain('CERTIFICATE');
  });
});
