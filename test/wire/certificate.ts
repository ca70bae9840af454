/** Certificates made on the spot, so that no key lies in the repository and none expires. */

import { generateKeyPairSync, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { der, integer, octets, oid, sequence, set, utcTime } from '../support/der.ts';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A self-signed X.509 v3 certificate (RFC 5280) for the DNS names and IPv4 addresses; it is its own CA. */
export function selfSigned(...names: string[]): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));
  const name = sequence(set(sequence(oid('550403'), der(0x0c, Buffer.from('token-sidecar wire tests')))));
  const alternatives = sequence(
    ...names.map((entry) =>
      isIPv4(entry) ? der(0x87, Buffer.from(entry.split('.').map(Number))) : der(0x82, Buffer.from(entry)),
    ),
  );
  const certificate = sequence(
    der(0xa0, integer('02')),
    integer('01'),
    ecdsaWithSha256,
    name,
    sequence(utcTime('200101000000Z'), utcTime('491231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(
        sequence(oid('551d13'), octets(sequence(der(0x01, Buffer.from([0xff]))))),
        sequence(oid('551d11'), octets(alternatives)),
      ),
    ),
  );
  const signature = sign('sha256', certificate, privateKey);
  const signed = sequence(certificate, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  const lines = signed.toString('base64').replace(/.{64}/g, '$&\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
