module kvoracle

go 1.20
