"""A real S3 service that verifies signatures: OpenStack Swift with its s3api and tempauth middleware.

usage: swift-server.py FOLDER PORT. Keeps its data in FOLDER and listens on 127.0.0.1:PORT (0: any free port), which is
printed once it is ready. The access key is test:tester, the secret testing. All servers share this one process.
"""

import os
import sys

import eventlet

eventlet.monkey_patch()

import swift.common.utils  # noqa: E402

folder, port = os.path.abspath(sys.argv[1]), int(sys.argv[2])
os.makedirs(os.path.join(folder, 'disk', 'sda'), exist_ok=True)
swift.common.utils.SWIFT_CONF_FILE = os.path.join(folder, 'swift.conf')


def write(name, text):
    with open(os.path.join(folder, name), 'w') as file:
        file.write(text)


write('swift.conf', '[swift-hash]\nswift_hash_path_suffix = test\nswift_hash_path_prefix = test\n')

from eventlet import wsgi  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.storage_policy import reload_storage_policies  # noqa: E402
from swift.common.wsgi import SwiftHttpProtocol, loadapp  # noqa: E402

swift.common.utils.validate_hash_conf()
reload_storage_policies()

sockets = {kind: eventlet.listen(('127.0.0.1', 0)) for kind in ('account', 'container', 'object')}
sockets['proxy'] = eventlet.listen(('127.0.0.1', port))

for kind in ('account', 'container', 'object'):
    ring = RingBuilder(1, 1, 1)
    device = {'id': 0, 'region': 1, 'zone': 1, 'weight': 1, 'ip': '127.0.0.1', 'device': 'sda', 'meta': ''}
    address = sockets[kind].getsockname()
    ring.add_dev({**device, 'port': address[1], 'replication_ip': address[0], 'replication_port': address[1]})
    ring.rebalance(seed=1)
    ring.get_ring().save(os.path.join(folder, kind + '.ring.gz'))
    write(kind + '.conf', f'''[DEFAULT]
devices = {folder}/disk
mount_check = false
swift_dir = {folder}
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
''')

write('proxy.conf', f'''[DEFAULT]
swift_dir = {folder}
[pipeline:main]
pipeline = cache s3api tempauth proxy-server
[filter:cache]
use = egg:swift#memcache
# s3api wants a cache, but works while none answers.
memcache_servers = 127.0.0.1:1
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
''')

with open(os.devnull, 'w') as quiet:
    for kind, socket in sockets.items():
        app = loadapp(os.path.join(folder, kind + '.conf'))
        eventlet.spawn(wsgi.server, socket, app, quiet, protocol=SwiftHttpProtocol)
    print(sockets['proxy'].getsockname()[1], flush=True)
    # Ends with whoever started it.
    eventlet.tpool.execute(sys.stdin.read)
