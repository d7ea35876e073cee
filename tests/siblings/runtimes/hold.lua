-- PUC Lua: all by realloc
print('READY') io.stdout:flush() io.read()
local keep, before = {}, collectgarbage('count')
for i = 1, 20000 do keep[i] = ('x'):rep(1000) .. i end
collectgarbage()
print('EXPECT', math.floor((collectgarbage('count') - before) * 1024)) print('DONE') io.stdout:flush() io.read()
