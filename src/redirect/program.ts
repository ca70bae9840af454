import type { Command } from '../config/command.ts';
import { readFlags } from '../config/settings.ts';
import { SidecarError } from '../platform/errors.ts';
import { NetlinkSocket } from './netfilter/netlink-socket.ts';
import { installation, removal, TABLE } from './netfilter/redirection-table.ts';
import { ALL_CHAINS, legacyNatChains, meshOfChains, meshOfNames } from './netfilter/service-mesh.ts';
import { REDIRECT_SETTINGS, readRedirectRequest } from './settings.ts';

export const redirect: Command = {
  summary:
    "Send the app's connections to the sidecar's listener, as an init container with NET_ADMIN (mode redirect); nothing else is touched",
  settings: REDIRECT_SETTINGS,
  examples: [
    ['token-sidecar redirect', 'in an init container: connections to the ports 80 and 443'],
    ['token-sidecar redirect --excluded-ranges 10.0.0.0/8', 'all but those to addresses of the cluster'],
    ['token-sidecar redirect --remove', 'undo it'],
  ],
  async run({ args, env, stdout }) {
    const request = readRedirectRequest(readFlags(REDIRECT_SETTINGS, args, env));
    using netfilter = new NetlinkSocket();
    if (request.kind === 'remove') {
      netfilter.change(removal());
      stdout.write(`redirect: the table ${TABLE} is not there any more\n`);
      return 0;
    }
    refuseBesideMesh(netfilter);
    const { redirection } = request;
    netfilter.change(installation(redirection));
    const ports = redirection.capturedPorts.map(({ first, last }) =>
      first === last ? first : `${first}-${last}`,
    );
    stdout.write(
      `redirect: the table ${TABLE} sends connections to the ports ${ports.join(', ')} to port ${redirection.port}, all but those of user ${redirection.exemptUser}\n`,
    );
    return 0;
  },
};

/** @throws {SidecarError} `configuration` if another program redirects the same connections. */
function refuseBesideMesh(netfilter: NetlinkSocket): void {
  const mesh = meshOfChains(netfilter.list(ALL_CHAINS)) ?? meshOfNames(legacyNatChains());
  if (mesh === undefined) return;
  throw new SidecarError(
    'configuration',
    `redirect: ${mesh} redirects the connections of this pod to its own proxy, which would get those of the sidecar, or the sidecar those of the proxy: expected the mode hosts or forward beside it, or a pod without ${mesh}`,
  );
}
