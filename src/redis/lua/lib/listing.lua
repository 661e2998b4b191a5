-- @include store
-- The list of organizations in which changes wait for their replay is a key by itself, in a cluster in another slot. A
-- change is queued only under the present listing of its organization, whose number must be on that list before. A
-- listing ends in the script that sees the queue empty (cutover/replay/close_listing.lua), and only then is its number
-- taken off the list. So whatever is killed or held up in between, no organization waits without being on the list.
local function listing_now() return redis.call('GET', replay_listing_key()) or '0' end
local function unlisted() return redis.error_reply('UNLISTED ' .. listing_now()) end
